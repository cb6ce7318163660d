#pragma once
#include <memory>

#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/algorithms/folding.hpp>
#include <ronda/collectives/reduction.hpp>
#include <ronda/collectives/transport/transport.hpp>
#include <ronda/runtime/core/buffer.hpp>

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
/// Order of reduction: pairs; both partners compute the same, since the operations are commutative: equal bits.
class RecursiveDoubling final : public Algorithm {
 public:
  /// @param data  the same count and type on every rank, 1 GiB or less; outlives this object
  RecursiveDoubling(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction);

  /// Collective over the transport's ranks.
  Task run() override;

 private:
  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  Folding folding_;
  Buffer scratch_;
  Request outgoing_, incoming_;
};

}  // namespace ronda
