#pragma once
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/core/event_sink.hpp>
#include <ronda/runtime/strategy/device_step.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// The device that this rank computes on, as the options and the machine have it: the processor, or the GPU of this
/// rank's number on its node. `automatic` is the processor so far, and says in one line what there would be. Throws
/// InputError, on all ranks, where a GPU is asked for and a rank has none, or the options want what no GPU does yet.
/// Collective.
ComputeDevice choose_device(const Communicator& communicator, const TrainingOptions& options, int threads,
                            EventSink& sink);

}  // namespace ronda
