#pragma once
#include <optional>
#include <span>
#include <vector>

#include <ronda/collectives/compression.hpp>
#include <ronda/collectives/link_costs.hpp>

namespace ronda {

/// How long the messages of an algorithm's steps take between the ranks of a group: what the formulas are made of. See
/// CostModel for the words.
class MessageTimes {
 public:
  /// @param costs          outlive this object
  /// @param ranks_of_node  all ranks, by node
  MessageTimes(const LinkCosts& costs, std::span<const std::vector<int>> ranks_of_node);

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int nodes() const noexcept { return nodes_; }
  [[nodiscard]] int slices() const noexcept { return slices_; }  ///< ranks of the node that has fewest
  [[nodiscard]] const LinkCosts& costs() const noexcept { return costs_; }

  /// How data travels: a byte of it is `share` bytes of a message, and takes so long to be packed and unpacked.
  struct Packed {
    Compression compression = Compression::none;
    double share = 1, seconds = 0;
  };
  [[nodiscard]] Packed packed(Compression compression) const;

  /// The way of the messages of one step: how many ranks of one node send to other nodes at a time.
  struct Way {
    int streams = 0;  ///< 0: all stay inside their node
  };
  /// @param partner_of  to whom a rank sends
  template <class PartnerOf>
  [[nodiscard]] Way way(PartnerOf partner_of) const {
    std::vector<int> leaving(static_cast<std::size_t>(nodes_));
    for (int rank = 0; rank < ranks_; ++rank)
      if (node_of(partner_of(rank)) != node_of(rank)) ++leaving[static_cast<std::size_t>(node_of(rank))];
    return {*std::ranges::max_element(leaving)};
  }
  /// In doubling and halving: with the rank that is `distance` away among a power of two of ranks.
  [[nodiscard]] Way way_of_exchange(int distance) const;
  /// Of each rank to all others at once.
  [[nodiscard]] Way way_to_all() const;
  /// Whether messages of this way were measured.
  [[nodiscard]] bool known(Way way) const noexcept;

  // Seconds; of ways that are known.

  [[nodiscard]] double exchange(Way way, double bytes, const Packed& packed) const;
  [[nodiscard]] double combining(double bytes) const noexcept { return costs_.combine_seconds * bytes; }
  /// An allreduce in the node's shared memory; nothing where it was not measured.
  [[nodiscard]] std::optional<double> window(double bytes) const;
  /// What ranks beyond a power of two add: one of two ranks has both's data afterwards; in the end it hands the result
  /// back.
  [[nodiscard]] std::optional<double> folded(double bytes, const Packed& packed) const;
  /// A ring of so many ranks, or, where what rounding loses is kept, a direct exchange.
  [[nodiscard]] std::optional<double> ring(int ranks, Way way, double bytes, const Packed& packed) const;
  /// A direct exchange of so many ranks, between many in a grid.
  [[nodiscard]] std::optional<double> direct(int ranks, Way way, double bytes, const Packed& packed) const;

 private:
  /// A chunk of 1/ranks of the data, as it is sent to one rank.
  struct Messages {
    double segments = 1, of_the_link = 0, latency = 0;
    double computing = 0;  ///< with the chunks of all others
  };
  [[nodiscard]] Messages messages_of(int ranks, Way way, double bytes, const Packed& packed) const;
  [[nodiscard]] int node_of(int rank) const noexcept { return node_of_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] double cost(CostCurve MessageCosts::*curve, Way way, double bytes) const noexcept;

  const LinkCosts& costs_;
  std::vector<int> node_of_;  ///< by rank
  int ranks_ = 0, nodes_ = 0, slices_ = 0;
};

}  // namespace ronda
