#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/host_step_queue.hpp>

namespace ronda {

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

}  // namespace ronda
