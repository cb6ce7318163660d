#pragma once
#include <cstddef>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/mirrored_options.hpp>
#include <ronda/runtime/strategy/replica.hpp>
#include <ronda/runtime/strategy/step_queue.hpp>
#include <ronda/runtime/strategy/strategy_plan.hpp>

namespace ronda {

/// Whether the ranks of a node share one copy of their parameters.
[[nodiscard]] bool has_one_copy(const StrategyOptions& strategy, const Communicator& communicator) noexcept;

/// Whether each rank keeps the sums of its share of the gradients alone.
[[nodiscard]] bool shards_gradients(const StrategyOptions& strategy, const Communicator& communicator) noexcept;

/// Elements of the arena whose optimizer states a rank has, by rank; empty: all ranks have all.
[[nodiscard]] std::vector<Range> shares_of_states(const StrategyOptions& strategy, int ranks, std::size_t elements);

[[nodiscard]] StepQueueOptions queue_options(const MirroredOptions& options);

/// What a mirrored strategy needs on this rank, but data and the exchange. Not collective. Throws InputError as
/// require_servable, require_divisible, require_shareable and require_sharded_gradients.
[[nodiscard]] StrategyPlan plan_mirrored(const MirroredOptions& options, const Replica& replica,
                                         const Optimizer& optimizer, const Communicator& communicator);

/// Tells the sink what was planned, and, where it wants details, what each operation takes, which is measured.
void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, Communicator& communicator, Replica& replica,
               EventSink& sink);

}  // namespace ronda
