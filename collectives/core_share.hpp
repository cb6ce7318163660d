#pragma once

namespace ronda {

/// The share of the node's cores that a rank has for itself, in cores.
struct CoreShare {
  double mine = 1;   ///< this rank's share: the smaller of its shares by affinity and by CPU quotas
  double bound = 1;  ///< share by affinity only: each core counts 1 divided by the ranks that may run on it
  double least = 1;  ///< smallest `mine` of all ranks
  /// By affinity this rank has less than one core, although its machine (or container) has cores on which no rank of
  /// this job may run.
  bool crowded = false;
};

}  // namespace ronda
