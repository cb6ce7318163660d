#pragma once
#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/host/reduction.hpp>

namespace ronda {

/// Whether this allreduce works in a node's memory alone.
[[nodiscard]] bool sends_nothing(AllreduceAlgorithm algorithm, const Topology& topology) noexcept;

/// What the numbers of an allreduce may be sent as: what was asked for; for `automatic` none where they cannot be
/// compressed. Throws InputError where what was asked for cannot be. Depends on nothing but its arguments, which are
/// the same on all ranks.
/// @param algorithm  as asked for
[[nodiscard]] Compression possible_compression(Compression wanted, AllreduceAlgorithm algorithm,
                                               const Elements& elements, ReduceOp op);

}  // namespace ronda
