#include <ronda/runtime/strategy/replica/control_block.hpp>

#include <new>

namespace ronda {

ControlBlock::ControlBlock(const ComputeDevice& device)
    : device_(device),
      own_(device_.context->allocate(sizeof(StepControl))),
      host_(device_.context->allocate_staging(sizeof(HostSide))),
      there_(reinterpret_cast<StepControl*>(own_.data())) {
  new (host_.data()) HostSide();
}

ControlBlock::ControlBlock(const ComputeDevice& device, StepControl& there)
    : device_(device), host_(device_.context->allocate_staging(sizeof(HostSide))), there_(&there) {
  new (host_.data()) HostSide();
}

void ControlBlock::write(const StepControl& value) {
  host().prepared = value;
  device_.context->copy(&host().prepared, there_, sizeof(StepControl), *device_.stream);
}

const StepControl& ControlBlock::read() {
  device_.context->copy(there_, &host().fetched, sizeof(StepControl), *device_.stream);
  device_.stream->synchronize();
  return host().fetched;
}

}  // namespace ronda
