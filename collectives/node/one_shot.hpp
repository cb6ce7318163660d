#pragma once
#include <array>

#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/node/copies.hpp>
#include <ronda/collectives/reduction.hpp>

namespace ronda {

/// Reduces a few bytes over the ranks of one node: each copies its data to where all see it, and when all have come,
/// each reduces all of them for itself. One barrier where TwoShot needs two.
///
/// The copies go to two places in turn, behind the rank's count of barriers: up to 24 bytes cross from one core to
/// another in one cache line with it. A rank that writes to one of them again has passed the barrier between, so all
/// ranks have come to that one, and are through with reading what was there before.
/// Order of summation: by rank, as TwoShot's.
class OneShot final : public Algorithm {
 public:
  /// Above, fetching all of the others' copies takes longer than a second barrier.
  static constexpr std::size_t largest_bytes = 256;
  static_assert(2 * largest_bytes <= sizeof(BarrierLine::room));

  OneShot(NodeCopies copies, const Reduction& reduction);

  Task run() override;

 private:
  NodeCopies copies_;
  NodeBarrier barrier_;
  Reduction reduction_;
  std::array<std::vector<std::byte*>, 2> places_;  ///< in turn, by rank
  std::size_t turn_ = 0;
};

}  // namespace ronda
