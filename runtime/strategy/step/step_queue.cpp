#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/device_step_queue.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {
namespace {

/// The processor's: work is done when it is given, and one step may be begun and not finished.
class HostStepQueue final : public StepQueue {
 public:
  HostStepQueue(const StepPlaces& places, std::size_t micro_batches) : places_(places), micro_batches_(micro_batches) {}

  void enqueue(const Batch& batch, const StepFlags& flags, Work work) override;
  const StepOutcome& finish() override;
  void drain() noexcept override { begun_ = false; }
  [[nodiscard]] std::size_t micro_batches() const noexcept override { return micro_batches_; }
  void set_micro_batches(std::size_t count) override;
  [[nodiscard]] std::size_t micro_batch() const noexcept override { return micro_batch_; }
  [[nodiscard]] bool at_last() const noexcept override { return micro_batch_ + 1 == micro_batches_; }
  [[nodiscard]] std::size_t in_flight() const noexcept override { return begun_ ? 1 : 0; }
  [[nodiscard]] std::size_t max_in_flight() const noexcept override { return 1; }

  const Batch& place(const Batch& batch) override { return batch; }
  void end_by_hand() noexcept override { micro_batch_ = 0; }
  const StepOutcome& outcome_by_hand() override;

  [[nodiscard]] std::size_t bytes_to_keep(const Dataset& /*data*/) const override { return 0; }
  void keep(const Dataset& data, const GatherRows& gather) override;
  [[nodiscard]] bool keeps(const Dataset& /*data*/) const noexcept override { return false; }
  void forget_data() noexcept override {}

 private:
  StepPlaces places_;
  std::size_t micro_batches_, micro_batch_ = 0;
  bool begun_ = false;
  StepOutcome outcome_;
};

void HostStepQueue::enqueue(const Batch& batch, const StepFlags& flags, Work work) {
  if (begun_) throw LogicError("a step was begun with one in flight; finish it before");
  if (micro_batch_ == 0) *places_.sums = StepControl{.flags = flags};
  work(batch);
  if (!at_last()) {
    ++micro_batch_;
    return;
  }
  end_by_hand();
  static_cast<void>(outcome_by_hand());
  begun_ = true;
}

void HostStepQueue::set_micro_batches(std::size_t count) {
  if (begun_ || micro_batch_ > 0) throw LogicError("the number of micro-batches was changed within a step");
  micro_batches_ = count;
}

const StepOutcome& HostStepQueue::finish() {
  if (!begun_) throw LogicError("a step was finished and none is in flight");
  begun_ = false;
  return outcome_;
}

const StepOutcome& HostStepQueue::outcome_by_hand() {
  outcome_ = {*places_.sums, *places_.outcome};
  return outcome_;
}

void HostStepQueue::keep(const Dataset& /*data*/, const GatherRows& /*gather*/) {
  throw LogicError("the processor keeps no data: it reads what batches hold");
}

}  // namespace

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
