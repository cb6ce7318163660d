#pragma once
#include <cstddef>
#include <memory>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/strategy_options.hpp>

namespace ronda {

/// Gives `replica` its arenas, where the other ranks reach them, and plans how its gradients are exchanged. A
/// communicator that knows of no GPU yet is told of the replica's. Collective; errors are agreed.
/// @param node_update_bytes  parameters from here on are updated by parts where all ranks are on one node: see
///                           NodeReduce
/// @param strategy           Sharded{.one_copy}: the ranks of the node share the values (Replica::share_values), for
///                           which require_shareable was called; throws as allocate_on_node
/// @param keeps_average      with that: and an average of them
std::unique_ptr<GradientExchange> make_exchange(Communicator& communicator, Replica& replica, FusionOptions options,
                                                std::size_t node_update_bytes, EventSink& sink,
                                                const StrategyOptions& strategy, bool keeps_average);

/// Gives `replica` arenas in this rank's memory. Not collective.
void take_own_arenas(Replica& replica);

}  // namespace ronda
