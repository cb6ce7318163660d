#include <ronda/runtime/strategy/control_block.hpp>

#include <new>

namespace ronda {

ControlBlock::ControlBlock(const ComputeDevice& device)
    : device_(device),
      own_(device_.context->allocate(sizeof(StepControl))),
      exchange_(device_.context->allocate_staging(sizeof(Exchange))),
      there_(reinterpret_cast<StepControl*>(own_.data())) {
  new (exchange_.data()) Exchange();
}

ControlBlock::ControlBlock(const ComputeDevice& device, StepControl& there)
    : device_(device), exchange_(device_.context->allocate_staging(sizeof(Exchange))), there_(&there) {
  new (exchange_.data()) Exchange();
}

void ControlBlock::clear(const StepFlags& flags) {
  exchange().prepared = StepControl{.flags = flags};
  device_.context->copy(&exchange().prepared, there_, sizeof(StepControl), *device_.stream);
}

const StepControl& ControlBlock::read() {
  device_.context->copy(there_, &exchange().fetched, sizeof(StepControl), *device_.stream);
  device_.stream->synchronize();
  return exchange().fetched;
}

}  // namespace ronda
