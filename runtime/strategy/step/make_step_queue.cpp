#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/device_step_queue.hpp>
#include <ronda/runtime/strategy/step/host_step_queue.hpp>

namespace ronda {

void require_none_in_flight(const StepQueue& queue, std::string_view function) {
  if (queue.in_flight() > 0)
    throw LogicError(std::string(function) + " with steps in flight; finish_step gives their results");
}

void require_last(const StepQueue& queue) {
  if (!queue.at_last())
    throw LogicError("a step was begun after " + std::to_string(queue.micro_batch()) + " calls of accumulate, and " +
                     std::to_string(queue.micro_batches() - 1) + " of its " + std::to_string(queue.micro_batches()) +
                     " micro-batches come first");
}

void require_before_last(const StepQueue& queue) {
  if (queue.at_last())
    throw LogicError("a step has " + std::to_string(queue.micro_batches()) +
                     " micro-batches; the last one is for train_step or begin_step");
}

std::size_t bytes_of_queue(const ComputeDevice& device, const StepQueueOptions& options) {
  if (device.context->device().kind == DeviceKind::cpu) return 0;
  return DeviceStepQueue::bytes_of_batches(options);
}

std::unique_ptr<StepQueue> make_step_queue(const ComputeDevice& device, const Communicator& communicator,
                                           const StepPlaces& places, const StepQueueOptions& options) {
  if (device.context->device().kind == DeviceKind::cpu)
    return std::make_unique<HostStepQueue>(places, options.micro_batches);
  return std::make_unique<DeviceStepQueue>(device, communicator, places, options);
}

}  // namespace ronda
