#include <ronda/runtime/strategy/device_step.hpp>

#include <algorithm>
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

void DeviceStep::keep(const Dataset& data, const GatherRows& gather) {
  if (datasets_.empty()) {
    const std::size_t bytes = Batch::of_samples(data, batch_.capacity()).request().size_bytes();
    request_ = device_.context->allocate_staging(bytes);
    asked_ = device_.context->allocate(bytes);
  }
  datasets_.emplace_back(data, *device_.context, *device_.stream, gather);
}

const DeviceDataset* DeviceStep::find(const Dataset* data) const noexcept {
  const auto found = std::ranges::find(datasets_, data, [](const DeviceDataset& each) { return &each.source(); });
  return found == datasets_.end() ? nullptr : &*found;
}

const DeviceOutcome& DeviceStep::run(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                                     const std::function<void()>& passes) {
  Stream& stream = *device_.stream;
  const DeviceDataset* const data = find(batch.source());
  const auto request = std::as_bytes(batch.request());
  if (data != nullptr)
    std::ranges::copy(request, request_.data());  // the device has read the last one: the host waited for it
  else
    staged_.copy_from(batch);  // likewise
  control.prepare(flags);
  const auto step = [&] {
    if (data != nullptr) {
      device_.context->copy(request_.data(), asked_.data(), request.size(), stream);
      data->gather(asked(), batch_, stream);
    } else {
      batch_.copy_from(staged_, *device_.context, stream);
    }
    control.send();
    passes();
    give_update(control);
  };
  if (record_ && steps_ == 1) {
    recording_ = communicator_.watched(device_.context->record(stream, step), "the recorded step");
    recorded_ = batch.source();
  }
  if (recording_ && recorded_ == batch.source())
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
  if (const DeviceDataset* const data = find(batch.source())) {
    const auto request = batch.request();
    device_.context->copy(request.data(), asked_.data(), request.size_bytes(), *device_.stream);
    data->gather(asked(), batch_, *device_.stream);
    batch_.note_real(batch.real());
  } else {
    batch_.copy_from(batch, *device_.context, *device_.stream);
  }
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
