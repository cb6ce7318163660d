#pragma once
#include <cstddef>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

// Parameters and their average, of which the ranks of a node share one copy (Replica::shares_values). In a step each
// rank writes its share, between two barriers of the exchange (NodeReduce, GatheredOneCopy). The functions here are for
// writes outside steps. If each rank has its own copy, they do not synchronise.
//
// Broadcasting the values to the ranks of the node is allowed: it overwrites bytes with equal bytes.

/// Throws InputError, with the reason and the remedy, if the ranks of a node cannot share one copy of the parameters:
/// for half types.
void require_shareable(const ReplicaPlan& plan);
/// Allocates an arena in memory shared by the node, as Communicator::allocate does. Collective. Throws ResourceError,
/// agreed, if there is not enough memory.
[[nodiscard]] Buffer allocate_on_node(Communicator& communicator, ArenaPlace place, std::size_t bytes, Memory memory);

/// True if this rank writes values that are equal on all ranks: with its own copy always; with shared values only on
/// the first rank of each node. Not collective.
[[nodiscard]] bool writes_values(const Replica& replica, const Communicator& communicator) noexcept;
/// Barrier over all ranks if they share values: earlier reads and writes are then complete. Collective.
void meet_where_shared(const Replica& replica, Communicator& communicator);
/// Calls `write` on every rank, between two barriers, to write this rank's part of its node's copy (Replica::written).
/// Collective.
void write_shares(const Replica& replica, Communicator& communicator, FunctionRef<void()> write);
/// Calls `write`, between two barriers, on the ranks for which writes_values is true. Collective.
void write_once(const Replica& replica, Communicator& communicator, FunctionRef<void()> write);

}  // namespace ronda
