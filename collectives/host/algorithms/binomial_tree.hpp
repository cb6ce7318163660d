#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// Data from one rank to all, or reduced from all to one, along a tree.
///
/// Ranks are counted from the root on. A rank's parent has the same number but for its lowest 1, and its children have
/// one more 1 below that. Eight ranks:
///
///     0 ── 4 ── 6 ── 7            broadcast: from the root down, the largest branch first
///     │    └─── 5                 reduce: from the leaves up, the smallest branch first
///     ├─── 2 ── 3
///     └─── 1
///
/// Cost: at most log2(n) latencies, and as often all of the data at the root: for short data.
/// Order of reduction: by number along the tree; the same in all runs.
class BinomialTree final : public Algorithm {
 public:
  enum class Direction : std::uint8_t { broadcast, reduce };

  /// @param data  the same count and type on every rank, 1 GiB or less; outlives this object. Reduced: the result on
  /// the root, and whatever comes of it on the others.
  BinomialTree(std::unique_ptr<Transport> transport, Elements data, int root, Direction direction,
               const Reduction& reduction = {});

  /// Collective over the transport's ranks.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

 private:
  [[nodiscard]] int rank_of(int number) const noexcept { return (number + root_) % transport_->size(); }

  std::unique_ptr<Transport> transport_;
  Elements data_;
  int root_, number_;  ///< this rank's, counted from the root on
  Direction direction_;
  Reduction reduction_;
  Buffer scratch_;
  Request incoming_;
  std::array<Request, 31> outgoing_;  ///< to children; or the first, to the parent
};

}  // namespace ronda
