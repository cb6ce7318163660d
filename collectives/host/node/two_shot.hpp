#pragma once
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/collectives/host/reduction.hpp>

namespace ronda {

/// Reduces over the ranks of one node, in memory that all of them see: nothing is sent and nothing copied.
///
/// Each rank is given one *part* of the data. When all have come, it sums that part over all copies and writes the sum
/// to all copies; when all have done so, everybody has everything. Three ranks, parts a, b, c; what rank 1 does:
///
///                     before          rank 1 sums b       after
///     rank 0's copy   a0  b0  c0      a0  B  c0           A  B  C
///     rank 1's copy   a1  b1  c1      a1  B  c1           A  B  C
///     rank 2's copy   a2  b2  c2      a2  B  c2           A  B  C
///
/// Cost: two barriers; each rank reads n times 1/n of the data and writes as much.
/// Order of summation: by rank, so the bits are the same on all ranks and in all runs.
class TwoShot final : public Algorithm {
 public:
  TwoShot(NodeCopies copies, const Reduction& reduction)
      : copies_(std::move(copies)), barrier_(copies_.lines, copies_.rank, copies_.ranks), reduction_(reduction) {
    copies_.touch(part());
  }

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(barrier_); }

 private:
  /// To and fro: what a cache has kept of one run is what the next begins with; blocks that the first-level cache
  /// holds.
  static constexpr std::size_t block_bytes = 8 << 10;
  void reduce_part();
  [[nodiscard]] Range part() const noexcept {
    return copies_.part(static_cast<std::size_t>(copies_.rank), copies_.data.size());
  }

  NodeCopies copies_;
  NodeBarrier barrier_;
  Reduction reduction_;
  bool backwards_ = false;  ///< in the next run
};

}  // namespace ronda
