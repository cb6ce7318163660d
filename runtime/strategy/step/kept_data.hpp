#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {

struct KeptDataOptions {
  double share = 0.5;                           ///< maximum share of free device memory for each dataset
  std::optional<std::size_t> memory_left = {};  ///< bytes up to the memory limit; nullopt: no limit
};

/// Copies each dataset to the devices of all ranks if it fits on every one. Returns the bytes used. Does nothing on the
/// CPU, which reads the batches' own data. Collective; errors are agreed.
std::size_t keep_on_devices(Communicator& communicator, const ComputeDevice& device, StepQueue& queue,
                            std::span<const Dataset* const> datasets, const GatherRows& gather, KeptDataOptions options,
                            EventSink& sink);

}  // namespace ronda
