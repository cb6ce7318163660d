#pragma once
#include <mpi.h>

#include <ronda/collectives/world.hpp>

namespace ronda {

template <>
World World::adopt<MPI_Comm>(MPI_Comm communicator, const WorldOptions& options);

}  // namespace ronda
