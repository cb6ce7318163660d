#pragma once
#include <cstddef>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/strategy_plan.hpp>

namespace ronda {

[[nodiscard]] ExchangeSettings exchange_settings(const MirroredOptions& options);

/// Memory and settings that a mirrored strategy needs on this rank, without data and the exchange. Not collective.
/// Throws as ExchangePlan::require_possible does.
[[nodiscard]] StrategyPlan plan_mirrored(const MirroredOptions& options, const ExchangePlan& exchange,
                                         const Replica& replica, const Optimizer& optimizer,
                                         const Communicator& communicator);

/// Reports the plan to the sink; if the sink wants details, also measures and reports the cost of each operation.
void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, const ExchangePlan& exchange,
               Communicator& communicator, Replica& replica, EventSink& sink);

}  // namespace ronda
