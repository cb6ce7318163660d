#pragma once
#include <cstddef>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/parts/whole_model.hpp>
#include <ronda/runtime/strategy/pipeline/staged_model.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/part_costs.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>

namespace ronda {

/// Throws InputError, with the remedy, for options that a pipeline cannot have.
void require_pipelined(const MirroredOptions& options);
/// Throws InputError for a model with a sparse gradient.
void require_dense_gradients(const StagedModel& model);

/// What a pipeline needs on this rank, but the exchange. Not collective.
/// @param replica  of this rank's stage
/// @param slots    micro-batches that it has in flight
[[nodiscard]] StrategyPlan plan_pipeline(const MirroredOptions& options, const StagedModel& model,
                                         const Replica& replica, const WholeModel& whole, const Optimizer& optimizer,
                                         std::size_t slots);

/// Tells the sink what was planned, and how long ranks will have nothing to do where that is long. Collective.
void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, const StagedModel& model, RankGroups& ranks,
               Communicator& communicator, EventSink& sink);

/// What all stages have cost, from what each rank says of its own. Collective.
/// @param all   the ranks of all pipelines, one pipeline's after the other's
/// @param mine  this rank's memory, and seconds that it computed and waited
[[nodiscard]] std::vector<StageCosts> gather_costs(Communicator& all, const StageCosts& mine, const StagedModel& model,
                                                   std::size_t micro_batches);

}  // namespace ronda
