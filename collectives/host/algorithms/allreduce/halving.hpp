#pragma once
#include <array>
#include <memory>

#include <ronda/collectives/host/algorithms/folding.hpp>
#include <ronda/collectives/host/algorithms/packing.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// Reduces data over all ranks, in place, with few messages and little data: between RecursiveDoubling and Ring.
///
/// Reduce-scatter by halving: every rank exchanges halves with the rank half the world away, and combines the half that
/// it keeps; then halves of that half with the rank a quarter away, and so on, until each has one piece, complete.
/// Allgather by doubling: the same steps backwards, each time getting the partner's completed piece. Four ranks, pieces
/// a, b, c, d; what rank 0 has:
///
///     a b c d   →   a b (of 0, 2)   →   A (of all)   →   A B   →   A B C D
///
/// Other numbers of ranks: see Folding.
/// Cost: 2 log2(n) latencies and 2 (n-1)/n of the data; all of it twice more where ranks are folded
/// (R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004).
/// Order of reduction: each piece is completed by one rank alone: equal bits. Compressed, that rank keeps what the
/// others will decode, and the bytes of finished pieces are passed on; a number is rounded in every step of the first
/// half, and once when it is finished.
class RecursiveHalving final : public Algorithm {
 public:
  /// @param data  the same count and type on every rank, 1 GiB or less; outlives this object
  /// @param wire  the same on every rank
  RecursiveHalving(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                   const Wire& wire = {});

  /// Collective over the transport's ranks.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }
  void visit(const std::string& name, StateVisitor& visitor) override { packing_.visit(name, visitor); }
  [[nodiscard]] std::size_t memory() const noexcept override { return packing_.memory(); }

 private:
  static constexpr std::size_t most_steps = 31;

  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  Folding folding_;
  Packing packing_;
  std::array<Range, most_steps> given_{};  ///< by step: the half that this rank gave away
  Request outgoing_, incoming_;
};

}  // namespace ronda
