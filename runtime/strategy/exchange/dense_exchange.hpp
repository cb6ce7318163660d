#pragma once
#include <cstddef>
#include <memory>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>

namespace ronda {

/// True if the ranks of a node can reduce and update gradients and values in place (NodeReduce).
/// @param node_update_bytes  minimum size of the parameters
[[nodiscard]] bool wants_node_reduce(const Communicator& communicator, const ReplicaPlan& plan,
                                     const FusionOptions& options, std::size_t node_update_bytes);

/// Makes the exchange in which every rank gets all sums, and updates the elements whose optimizer states it keeps; for
/// sparse tables, of their touched rows. Allocates the replica's arenas. Collective; errors are agreed.
[[nodiscard]] std::unique_ptr<GradientExchange> make_dense_exchange(Communicator& communicator, Replica& replica,
                                                                    const ExchangeSettings& settings, EventSink& sink);

}  // namespace ronda
