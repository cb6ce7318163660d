#pragma once
#include <span>

namespace ronda {

/// Sums over all ranks in the middle of a pass, for operations that need other ranks' numbers: statistics of a whole
/// global batch. A strategy has one; a program of its own has none.
class RankSums {
 public:
  virtual ~RankSums() = default;
  /// `numbers` become the sums over all ranks, the same bits on all. Collective; in the order of the calling thread.
  /// Throws LogicError for as many numbers as no operation has planned (OperationPlan::rank_sums), CommunicationError.
  virtual void add_up(std::span<double> numbers) = 0;
};

}  // namespace ronda
