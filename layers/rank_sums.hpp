#pragma once
#include <span>

namespace ronda {

/// Sums over all ranks in the middle of a pass, for operations that need statistics of the global batch. Only programs
/// under a strategy have one.
class RankSums {
 public:
  virtual ~RankSums() = default;
  /// Replaces `numbers` by the sums over all ranks, bitwise equal on all. Collective; calls match in the order of the
  /// calling thread. Throws LogicError for a length that no operation has planned (OperationPlan::rank_sums);
  /// CommunicationError.
  virtual void add_up(std::span<double> numbers) = 0;
};

}  // namespace ronda
