#pragma once
#include <cstddef>
#include <optional>
#include <span>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/runtime/strategy/step_queue.hpp>

namespace ronda {

struct KeptDataOptions {
  double share = 0.5;                           ///< of the device's memory that is free, at most, for each dataset
  std::optional<std::size_t> memory_left = {};  ///< bytes up to the limit of memory; none: there is no limit
};

/// Has the devices of all ranks keep each dataset that has room on all of them. Returns its bytes. Not for the
/// processor, which reads what batches hold. Collective; errors are agreed.
std::size_t keep_on_devices(Communicator& communicator, const ComputeDevice& device, StepQueue& queue,
                            std::span<const Dataset* const> datasets, const GatherRows& gather, KeptDataOptions options,
                            EventSink& sink);

}  // namespace ronda
