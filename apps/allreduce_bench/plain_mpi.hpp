// MPI_Allreduce, beside which ours is measured: what a program without Ronda would do.
#pragma once
#include <cstddef>

#include <ronda/collectives/reduce_op.hpp>
#include <ronda/core/dtype.hpp>

namespace ronda::apps {

/// Throws InputError where MPI has no such type. Not collective.
void require_known_to_mpi(DType dtype);

/// In place, over MPI_COMM_WORLD; a mean is MPI's sum. Collective.
void mpi_allreduce(std::byte* data, std::size_t count, DType dtype, ReduceOp op);

}  // namespace ronda::apps
