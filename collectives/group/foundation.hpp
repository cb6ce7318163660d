#pragma once
#include <memory>

#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/group/watched.hpp>
#include <ronda/collectives/world.hpp>

namespace ronda {

/// What a world is built on.
struct World::Foundation {
  Watched watched;                       ///< outlives the others
  std::shared_ptr<const void> lifetime;  ///< of what the fabric uses; null: it is the caller's
  std::unique_ptr<Fabric> fabric;
};

/// Throws InputError if an option has no sense.
void require_sense(const WorldOptions& options);

}  // namespace ronda
