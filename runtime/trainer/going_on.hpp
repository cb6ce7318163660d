#pragma once
#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/strategy/strategy.hpp>
#include <ronda/runtime/trainer/resumption.hpp>
#include <ronda/runtime/trainer/training_progress.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

/// Sets the strategy's states from a checkpoint, and returns how far that training had come. Says whether the bits will
/// be those of a training that was never interrupted. Collective; throws InputError, agreed, where the checkpoint does
/// not fit, and where `options.exact` is not to be had.
/// @param plan  of the training batches: with another global batch, the samples that are done count
[[nodiscard]] TrainingProgress go_on_from(const Resumption& resumption, const TrainingSetup& setup,
                                          const BatchPlan& plan, Strategy& strategy, EventSink& sink);

}  // namespace ronda
