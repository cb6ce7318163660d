#pragma once
#include <cstddef>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/reduction.hpp>

namespace ronda {

/// Whether this allreduce works in a node's memory alone.
[[nodiscard]] bool sends_nothing(AllreduceAlgorithm algorithm, const Topology& topology) noexcept;

/// What the numbers of an allreduce are sent as: what was asked for; none where they are not sent, in the node's
/// memory; for `automatic` bf16 where that pays, and none elsewhere. Depends on nothing but its arguments, which are
/// the same on all ranks. Throws InputError where what was asked for cannot be.
/// @param algorithm  as chosen: not automatic
[[nodiscard]] Compression choose_compression(Compression wanted, AllreduceAlgorithm algorithm, const Elements& elements,
                                             ReduceOp op, const Topology& topology);

}  // namespace ronda
