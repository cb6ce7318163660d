#pragma once
#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>
#include <ronda/runtime/trainer/resumption.hpp>
#include <ronda/runtime/trainer/training_progress.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

/// Sets the strategy's states from a checkpoint, and returns the progress of its training. Reports whether the bits
/// will be those of an uninterrupted training. Collective; throws InputError, agreed, if the checkpoint does not match,
/// or if `options.exact` cannot be met.
/// @param plan  of the training batches: with another global batch size, progress is counted in samples
[[nodiscard]] TrainingProgress go_on_from(const Resumption& resumption, const TrainingSetup& setup,
                                          const BatchPlan& plan, Strategy& strategy, EventSink& sink);

}  // namespace ronda
