#pragma once
#include <memory>
#include <vector>

#include <ronda/collectives/host_names.hpp>

namespace ronda {

/// Ranks of a world that take part in something, in the order of their ranks there. A list is stored once.
using Ranks = std::shared_ptr<const std::vector<int>>;

/// The ranks of a world, and where they run: a value, equal on all ranks except `self`.
struct Roster {
  int self = 0;
  HostNames hosts;             ///< by rank
  std::vector<int> neighbour;  ///< by rank: the lowest rank with which it shares memory

  [[nodiscard]] int size() const noexcept { return static_cast<int>(neighbour.size()); }
  /// All ranks.
  [[nodiscard]] Ranks all() const;
  /// The ranks that share memory with `self`, in ascending order.
  [[nodiscard]] Ranks beside_self() const;
};

}  // namespace ronda
