#include <ronda/runtime/strategy/device_step.hpp>

#include <new>
#include <utility>

namespace ronda {

DeviceStep::DeviceStep(ComputeDevice device, Communicator communicator, std::span<const Field> fields,
                       std::size_t batch_capacity)
    : device_(std::move(device)),
      communicator_(std::move(communicator)),
      staged_(Batch::staging(fields, batch_capacity, *device_.context)),
      batch_(fields, batch_capacity, *device_.context),
      outcome_(device_.context->allocate_staging(sizeof(DeviceOutcome))) {
  new (outcome_.data()) DeviceOutcome{};
}

const DeviceOutcome& DeviceStep::run(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                                     const std::function<void()>& passes) {
  Stream& stream = *device_.stream;
  staged_.copy_from(batch);  // the device has read the last one: the host waited for it
  control.prepare(flags);
  const auto step = [&] {
    batch_.copy_from(staged_, *device_.context, stream);
    control.send();
    passes();
    give_update(control);
  };
  if (record_ && steps_ == 1)
    recording_ = communicator_.watched(device_.context->record(stream, step), "the recorded step");
  if (recording_)
    recording_->replay(stream);
  else
    step();
  ++steps_;
  return wait_for_outcome();
}

void DeviceStep::give_update(ControlBlock& control) {
  update_->step(control.there(), *device_.stream);
  device_.context->copy(update_->outcome(), &outcome(), sizeof(DeviceOutcome), *device_.stream);
  control.fetch();
}

const DeviceOutcome& DeviceStep::wait_for_outcome() {
  device_.stream->synchronize();
  communicator_.require_devices();
  return outcome();
}

const Batch& DeviceStep::place(const Batch& batch) {
  batch_.copy_from(batch, *device_.context, *device_.stream);
  return batch_;
}

const DeviceOutcome& DeviceStep::update(ControlBlock& control) {
  give_update(control);
  return wait_for_outcome();
}

Tensor DeviceStep::on_host(const Tensor& tensor) {
  const std::size_t bytes = tensor.desc().bytes();
  if (shown_.bytes() < bytes) shown_ = device_.context->allocate_staging(bytes);
  device_.context->copy(tensor.data(), shown_.data(), bytes, *device_.stream);
  device_.stream->synchronize();
  return {tensor.desc(), shown_.data()};
}

}  // namespace ronda
