#pragma once
#include <array>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/collectives/host/reduction.hpp>

namespace ronda {

/// Reduces a few bytes over the ranks of one node: each copies its data to where all see it, and when all have come,
/// each reduces all of them for itself. One barrier where TwoShot needs two.
///
/// The data lies beside the rank's count of barriers: up to 56 bytes cross from core to core in one cache line with it.
/// Runs use two such lines in turn. A rank that writes to one of them again has passed the barrier between, so all
/// ranks have come to that one, and are through with reading what was there before. Order of summation: by rank, as
/// TwoShot's.
class OneShot final : public Algorithm {
 public:
  /// Above, fetching all of the others' copies takes longer than a second barrier.
  static constexpr std::size_t largest_bytes = 256;
  static_assert(64 + largest_bytes <= sizeof(BarrierLine));

  OneShot(NodeCopies copies, const Reduction& reduction);

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& /*visit*/) override {}  // others see copies of its own

 private:
  struct Turn {
    Turn(const NodeCopies& copies, std::size_t turn);

    std::vector<BarrierLine*> lines;  ///< by rank
    std::vector<std::byte*> places;   ///< likewise, of the data
    NodeBarrier barrier;
  };

  NodeCopies copies_;
  Reduction reduction_;
  std::array<Turn, NodeCopies::lines_a_rank> turns_;
  std::size_t turn_ = 0;
};

}  // namespace ronda
