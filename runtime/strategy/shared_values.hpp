#pragma once
#include <cstddef>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/runtime/strategy/arena_memory.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

// Parameters, and their average, of which the ranks of a node share one copy (Replica::shares_values). In a step each
// rank writes its share of them, between two meetings of the exchange (NodeReduce, GatheredOneCopy). What is here is
// for those who write them outside steps. Where each rank has a copy of its own, nobody meets anybody.
//
// A broadcast of these to the ranks of the node is no error: each byte that is written lies there already.

/// Throws InputError, with the reason and the remedy, where the ranks' parameters cannot lie once in a node's memory:
/// in half types.
void require_shareable(const ReplicaPlan& plan);
/// An arena in memory of the node's, as Communicator::allocate, that has to be shared. Collective. Throws
/// ResourceError, agreed, where there is no room.
[[nodiscard]] Buffer allocate_on_node(Communicator& communicator, ArenaPlace place, std::size_t bytes, Memory memory);

/// Whether this rank writes what all have the same: all do, but those that have the memory of another, and the first of
/// these. Not collective.
[[nodiscard]] bool writes_values(const Replica& replica, const Communicator& communicator) noexcept;
/// Returns when all ranks have come: those who read have read, those who wrote have written. Collective.
void meet_where_shared(const Replica& replica, Communicator& communicator);
/// Calls `write` on every rank, between two meetings, to write this rank's part of its node's copy
/// (Replica::written). Collective.
void write_shares(const Replica& replica, Communicator& communicator, FunctionRef<void()> write);
/// Calls `write`, between two meetings, on the ranks that write what all have the same. Collective.
void write_once(const Replica& replica, Communicator& communicator, FunctionRef<void()> write);

}  // namespace ronda
