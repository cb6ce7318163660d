#pragma once
#include <memory>

#include <ronda/collectives/host/algorithms/folding.hpp>
#include <ronda/collectives/host/algorithms/packing.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// Reduces data over all ranks, in place, in as few messages as can be: for data so short that only their number
/// counts.
///
/// In step k every rank exchanges all it has with the rank whose number differs in bit k, and both combine: after k
/// steps groups of 2^k ranks have the same. Four ranks:
///
///     start      step 1: with the next      step 2: with the next but one
///     0          0+1                        0+1+2+3
///     1          0+1                        0+1+2+3
///     2          2+3                        0+1+2+3
///     3          2+3                        0+1+2+3
///
/// Other numbers of ranks: see Folding.
/// Cost: log2(n) latencies and as often all of the data (two more of each where ranks are folded).
/// Order of reduction: pairs; both partners compute the same, since the operations are commutative: equal bits. But for
/// NaN, where the first operand's sign and payload would stay; so all become one.
/// Compressed, both operands are what the partner decodes: a number is rounded in every step, alike by all that have
/// it.
class RecursiveDoubling final : public Algorithm {
 public:
  /// @param data  the same count and type on every rank, 1 GiB or less; outlives this object
  /// @param wire  the same on every rank
  RecursiveDoubling(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                    const Wire& wire = {});

  /// Collective over the transport's ranks.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }
  void visit(const std::string& name, StateVisitor& visitor) override { packing_.visit(name, visitor); }
  [[nodiscard]] std::size_t memory() const noexcept override { return packing_.memory(); }

 private:
  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  Folding folding_;
  Packing packing_;
  Request outgoing_, incoming_;
};

}  // namespace ronda
