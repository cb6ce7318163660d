#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/key_value/key_value_store.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>
#include <ronda/runtime/strategy/local_sgd_options.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

/// Gives `replica` its arenas, where the other ranks reach them, and plans how its gradients are exchanged. A
/// communicator that knows of no GPU yet is told of the replica's. Collective; errors are agreed.
/// @param node_update_bytes  parameters from here on are updated by parts where all ranks are on one node: see
///                           NodeReduce
/// @param one_copy           the ranks of the node share the values (Replica::share_values), for which
///                           require_shareable was called; throws as allocate_on_node
/// @param keeps_average      with that: and an average of them
/// @param local              given: ranks make steps of their own, see LocalSteps
/// @param servers            with any, some ranks are servers: see ParameterServers and OwnPace
/// @param shard_gradients    each rank keeps the sums of its share of the gradients alone: see ShardedGradients
std::unique_ptr<GradientExchange> make_exchange(Communicator& communicator, Replica& replica, FusionOptions options,
                                                std::size_t node_update_bytes, EventSink& sink,
                                                const std::optional<LocalSgdOptions>& local = {},
                                                const KeyValueOptions& servers = {.servers = 0}, bool one_copy = false,
                                                bool keeps_average = false, bool shard_gradients = false);

}  // namespace ronda
