#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/compression.hpp>
#include <ronda/collectives/host/algorithms/message_times.hpp>
#include <ronda/collectives/link_costs.hpp>

namespace ronda {

/// How long an allreduce will take: the textbooks' formulas, which stand in the algorithms' rows, with the costs of
/// messages as they were measured between these ranks in place of a latency and a bandwidth.
///
/// Words: n ranks on m nodes; B bytes a rank; x(b) is what an *exchange* of b bytes takes, f(b) what each of
/// many messages of b bytes takes in the *flow* of a ring, w(b) what the node's *window* takes, g seconds a byte to
/// *combine* two numbers. A step's x is that of the network as soon as any rank's partner sits on another node, for as
/// many ranks of one node as do so at a time: the more, the less of the node's link for each.
///
///     doubling      sum over k < log2(n) of  x(B) + g B
///     halving       sum over k = 1 … log2(n) of  2 x(B/2^k) + g B/2^k
///     ring          2(n-1) max(s f(c), s/L x(c)) + (n-1) g B/n
///     node          w(B)
///     hierarchical  w(B) + a ring's over m nodes, of B/slices, from all slices at once
///
/// In the ring a chunk has s segments of c = B/(n s) bytes, of which L are under way: either the link is full, or the
/// way is long. A direct exchange sends such a message to each of n-1 others, one after the other; of a chunk's s
/// messages 4 are on their way to their owner at a time, and 4 on their way back:
///
///     direct        max(2 (x(c) + ((n-1) s - 1) f(c)), (2 + (s-1)/4) x(c)) + (n-1) g B/n
///
/// Where what is sent is compressed, messages have the wire's bytes, and each costs its packing and unpacking as well:
/// p seconds for a byte as it was. The ring of int8, int4 and 2bit is a direct exchange.
///
/// An allreduce that was tried for just as many bytes takes its formula's time times what that was found to be off by.
///
/// Of other n than powers of two, doubling and halving take the next lower power, and 2 x(B) + g B more.
///
/// R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 2005
/// (doubling, halving); P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
/// JPDC 2009 (ring); A. Alexandrov et al., "LogGP: incorporating long messages into the LogP model", SPAA 1995 (a
/// message's time by its bytes).
class CostModel {
 public:
  /// @param costs          outlive this object
  /// @param ranks_of_node  all ranks, by node; likewise
  /// @param uses_trials    of the sizes that are asked for; otherwise the formulas alone
  CostModel(const LinkCosts& costs, std::span<const std::vector<int>> ranks_of_node, bool uses_trials = true)
      : times_(costs, ranks_of_node), uses_trials_(uses_trials) {}

  /// Of an allreduce of `bytes`, none of whose messages wait for others' computing. Nothing for the plain MPI's, whose
  /// algorithm is not known, and where costs that it takes are not.
  [[nodiscard]] std::optional<double> seconds(AllreduceAlgorithm algorithm, std::size_t bytes,
                                              Compression compression = Compression::none) const;

  /// The size at which to try an allreduce of `bytes`: about as large, if that takes not too long and not too much
  /// memory. Sizes that share it share what is measured there.
  [[nodiscard]] std::size_t trial_bytes(std::size_t bytes) const;

 private:
  [[nodiscard]] std::optional<double> formula(AllreduceAlgorithm algorithm, double bytes,
                                              const MessageTimes::Packed& packed) const;

  MessageTimes times_;
  bool uses_trials_;
};

}  // namespace ronda
