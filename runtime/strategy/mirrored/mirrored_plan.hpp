#pragma once
#include <cstddef>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>

namespace ronda {

/// True if the ranks of a node share one copy of their parameters.
[[nodiscard]] bool has_one_copy(const StrategyOptions& strategy, const Communicator& communicator) noexcept;

/// True if each rank stores only the sums of its share of the gradients.
[[nodiscard]] bool shards_gradients(const StrategyOptions& strategy, const Communicator& communicator) noexcept;

/// By rank: the elements of the arena whose optimizer states the rank stores; empty: all ranks store all.
[[nodiscard]] std::vector<Range> shares_of_states(const StrategyOptions& strategy, int ranks, std::size_t elements);

[[nodiscard]] StepQueueOptions queue_options(const MirroredOptions& options);

/// Memory and settings that a mirrored strategy needs on this rank, without data and the exchange. Not collective.
/// Throws InputError as require_servable, require_divisible, require_shareable and require_sharded_gradients do.
[[nodiscard]] StrategyPlan plan_mirrored(const MirroredOptions& options, const Replica& replica,
                                         const Optimizer& optimizer, const Communicator& communicator);

/// Reports the plan to the sink; if the sink wants details, also measures and reports the cost of each operation.
void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, Communicator& communicator, Replica& replica,
               EventSink& sink);

}  // namespace ronda
