#pragma once
#include <cstddef>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/communicator.hpp>

namespace ronda {

/// What an allreduce of `bytes` is done by: what was asked for, or for `automatic` the fastest. Depends on nothing but
/// its arguments, which are the same on all ranks. Throws InputError where what was asked for cannot be.
/// @param node_shared  the tensor lies, on every rank, in memory that its node shares
[[nodiscard]] AllreduceAlgorithm choose_allreduce(AllreduceAlgorithm wanted, std::size_t bytes, bool node_shared,
                                                  const Topology& topology);

}  // namespace ronda
