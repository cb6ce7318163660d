#pragma once
#include <span>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// The device that this rank computes on, as the options and the machine have it: the processor, or the GPU of this
/// rank's number on its node. `automatic` is the processor so far, and says in one line what there would be. Throws
/// InputError, on all ranks, where a GPU is asked for and a rank has none. Collective.
ComputeDevice choose_device(const Communicator& communicator, const TrainingOptions& options, int threads,
                            EventSink& sink);

/// Throws InputError where the options want what no GPU does yet.
void require_for_gpus(const TrainingOptions& options);

/// Throws InputError where the options want what this rank's processor does not do, or does slowly and was not told to.
void require_for_processor(const TrainingOptions& options);

/// Why `--device cuda` cannot be, in one line; empty where it can.
/// @param reasons  by rank, why that has no GPU; empty where it has
[[nodiscard]] std::string refusal_of_gpus(std::span<const std::string> reasons, const HostNames& hosts);

}  // namespace ronda
