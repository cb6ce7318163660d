#pragma once
#include <span>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// Chooses the device that this rank computes on from the options and the machine: the CPU, or the GPU with this rank's
/// number on its node. `automatic` selects the CPU, and prints a note if a GPU is present. Throws InputError, on all
/// ranks, if a GPU is requested and a rank has none. Collective.
ComputeDevice choose_device(const Communicator& communicator, const TrainingOptions& options, int threads,
                            EventSink& sink);

/// Throws InputError for options that GPUs do not support yet.
void require_for_gpus(const TrainingOptions& options);

/// Throws InputError for options that this rank's CPU does not support, or supports only slowly while the options do
/// not allow that.
void require_for_processor(const TrainingOptions& options);

/// Why `--device cuda` is not possible, in one line; empty if it is.
/// @param reasons  by rank: why it has no GPU; empty if it has one
[[nodiscard]] std::string refusal_of_gpus(std::span<const std::string> reasons, const HostNames& hosts);

}  // namespace ronda
