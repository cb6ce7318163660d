#pragma once

namespace ronda {

/// The cores that each rank has for itself.
struct CoreShare {
  double mine = 1;   ///< the smaller of what its affinity and what quotas of processor time leave it
  double bound = 1;  ///< by affinity alone: every core counts 1 divided by the ranks that may run on it
  double least = 1;  ///< of `mine`, over all ranks
  /// This rank has less than a core, though its machine (or container) has cores that no rank here may run on.
  bool crowded = false;
};

}  // namespace ronda
