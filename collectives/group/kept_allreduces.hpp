#pragma once
#include <cstddef>
#include <list>
#include <memory>

#include <ronda/collectives/host/planning/allreduce_planner.hpp>

namespace ronda {

/// Allreduces for once that may come again: what was planned for one is kept, with memory of its own, into which the
/// tensor is copied. All ranks keep the same ones, because none of what decides is a rank's own.
class KeptAllreduces {
 public:
  /// @param members, agreement, links, memory, planner  outlive this object
  KeptAllreduces(Members& members, Agreement& agreement, Links& links, NodeMemory& memory, AllreducePlanner& planner)
      : members_(members), agreement_(agreement), links_(links), memory_(memory), planner_(planner) {}

  /// Whether a plan is worth keeping, which all ranks answer alike. Not collective.
  [[nodiscard]] bool keeps(const Tensor& tensor) const;
  /// Compares what the ranks give only where it is new. Collective.
  void run(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm);

 private:
  struct Kept {
    std::size_t count;
    DType dtype;
    ReduceOp op;
    AllreduceAlgorithm algorithm;
    Buffer memory;
    std::unique_ptr<Collective> plan;  ///< goes before the memory
  };
  static constexpr std::size_t most_kept = 16;
  [[nodiscard]] Kept make(const Tensor& tensor, ReduceOp op, AllreduceAlgorithm algorithm);

  Members& members_;
  Agreement& agreement_;
  Links& links_;
  NodeMemory& memory_;
  AllreducePlanner& planner_;
  std::list<Kept> kept_;  ///< the latest first
};

}  // namespace ronda
