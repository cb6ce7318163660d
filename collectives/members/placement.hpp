#pragma once
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/core_share.hpp>
#include <ronda/collectives/members/assembly.hpp>

namespace ronda {

/// Where the ranks of a group run, as an algorithm needs it.
struct Placement {
  Topology topology;
  std::vector<std::vector<int>> ranks_of_node;  ///< both in ascending order: nodes by their lowest rank

  /// @param ranks           of the group, in the world; this rank is one
  /// @param ranks_per_node  makes a node of every so many ranks of a host; 0: a host is a node
  /// `oversubscribed` is left to the caller.
  [[nodiscard]] static Placement of(const Roster& world, const std::vector<int>& ranks, int ranks_per_node);
};

/// Looks at the affinity and the quotas of all ranks. Collective.
/// @param host  those of `all` that share memory with this rank
[[nodiscard]] CoreShare share_cores(Assembly& all, Assembly& host);

}  // namespace ronda
