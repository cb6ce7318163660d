#pragma once
#include <array>
#include <functional>
#include <memory>
#include <span>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// Every rank's block of bytes, merged into one that all have in the end: up a binomial tree (see BinomialTree) to rank
/// 0, where each rank merges what comes from below into its own, and down again.
///
/// A rank's branch are the ranks that follow it, so that what is merged comes in the order of ranks.
///
/// Cost: 2 log2(n) latencies; a rank sends at most 1 + log2(n) blocks, and keeps one beside its own.
class TreeMerge final : public Algorithm {
 public:
  /// Puts what `other` says into `mine`, which is as long. Called by whoever runs the collective.
  using Merge = std::function<void(std::span<std::byte> mine, std::span<const std::byte> other)>;

  /// @param block  of the same length on every rank; outlives this object
  TreeMerge(std::unique_ptr<Transport> transport, std::span<std::byte> block, Merge merge);

  /// Collective over the transport's ranks.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

 private:
  std::unique_ptr<Transport> transport_;
  std::span<std::byte> block_;
  Merge merge_;
  Buffer scratch_;
  Request request_;
  std::array<Request, 31> outgoing_;  ///< to children
};

}  // namespace ronda
