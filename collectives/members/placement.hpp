#pragma once
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/core_share.hpp>
#include <ronda/collectives/host/transport/mpi.hpp>

namespace ronda {

/// Where the ranks of a communicator sit, as an algorithm needs it.
struct Placement {
  Topology topology;
  std::vector<std::vector<int>> ranks_of_node;  ///< both in ascending order: nodes by their lowest rank
  mpi::Communicator node;                       ///< the ranks of this one's node

  /// Collective over `communicator`. Takes every `ranks_per_node` ranks of a host for a node of their own where it is
  /// not 0. `oversubscribed` is left to the caller.
  [[nodiscard]] static Placement of(const mpi::Communicator& communicator, int ranks_per_node);
};

/// Looks at the affinity and the quotas of all ranks. Collective over `communicator`.
[[nodiscard]] CoreShare share_cores(const mpi::Communicator& communicator);

}  // namespace ronda
