#pragma once
#include <memory>
#include <string>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/node/copies.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>

namespace ronda {

/// Reduces over nodes of several ranks: in memory inside a node, by messages between nodes.
///
/// The data is cut into *slices*, as many as the node with the fewest ranks has; on each node the rank with a slice's
/// number owns it. The owner sums its slice over the copies of its node, sums it over the nodes in a ring with the
/// owners of the same slice there, and writes it to the copies of its node. So all owners of a node send at the same
/// time, and each byte crosses the network once for the node, not once for each of its ranks.
///
/// Cost: two node barriers; between nodes what a ring of the nodes costs, for 1/slices of the data an owner.
/// Between nodes numbers may be compressed; inside they are as they are.
/// Order of summation: by rank inside a node, as the ring's between nodes.
class Hierarchical final : public Algorithm {
 public:
  /// @param copies  of this rank's node
  /// @param slices  the same on all nodes; at most the ranks of the smallest
  /// @param across  to the owners of this rank's slice on all nodes, by node; null where this rank owns none
  /// @param wire  what is sent between nodes; the same on every rank
  Hierarchical(NodeCopies copies, const Reduction& reduction, int slices, std::unique_ptr<Transport> across,
               const Wire& wire = {});

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override {
    visit(barrier_);
    if (across_) across_->visit_traffic(visit);
  }
  void prepare() override;
  void visit(const std::string& name, StateVisitor& visitor) override {
    if (across_) across_->visit(name, visitor);
  }
  [[nodiscard]] std::size_t memory() const noexcept override { return across_ ? across_->memory() : 0; }

 private:
  NodeCopies copies_;
  NodeBarrier barrier_;
  Reduction in_node_;
  Range slice_;
  std::unique_ptr<Algorithm> across_;  ///< none where this rank owns no slice
};

}  // namespace ronda
