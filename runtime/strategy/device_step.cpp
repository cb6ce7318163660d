#include <ronda/runtime/strategy/device_step.hpp>

#include <new>

namespace ronda {

ComputeDevice ComputeDevice::on(std::shared_ptr<DeviceContext> context) {
  std::shared_ptr<Stream> stream = context->make_stream(StreamPriority::usual);
  return {std::move(context), std::move(stream)};
}

DeviceStep::DeviceStep(ComputeDevice device, std::span<const Field> fields, std::size_t batch_capacity)
    : device_(std::move(device)),
      staged_(Batch::staging(fields, batch_capacity, *device_.context)),
      batch_(fields, batch_capacity, *device_.context),
      control_(device_.context->allocate(sizeof(StepControl))),
      exchange_(device_.context->allocate_staging(sizeof(Exchange))) {
  new (exchange_.data()) Exchange{};
}

const DeviceOutcome& DeviceStep::run(const Batch& batch, const StepFlags& flags, const std::function<void()>& passes) {
  Stream& stream = *device_.stream;
  staged_.copy_from(batch);  // the device has read the last one: the host waited for it
  exchange().cleared = StepControl{.flags = flags};
  const auto step = [&] {
    give_inputs();
    passes();
    give_update();
  };
  if (record_ && steps_ == 1) recording_ = device_.context->record(stream, step);
  if (recording_)
    recording_->replay(stream);
  else
    step();
  ++steps_;
  stream.synchronize();
  return exchange().outcome;
}

void DeviceStep::give_inputs() {
  batch_.copy_from(staged_, *device_.context, *device_.stream);
  device_.context->copy(&exchange().cleared, control(), sizeof(StepControl), *device_.stream);
}

void DeviceStep::give_update() {
  update_->step(control(), *device_.stream);
  device_.context->copy(update_->outcome(), &exchange().outcome, sizeof(DeviceOutcome), *device_.stream);
  device_.context->copy(control(), &exchange().sums, sizeof(StepControl), *device_.stream);
}

const Batch& DeviceStep::place(const Batch& batch) {
  batch_.copy_from(batch, *device_.context, *device_.stream);
  return batch_;
}

StepControl* DeviceStep::control() const noexcept { return reinterpret_cast<StepControl*>(control_.data()); }

void DeviceStep::begin(const StepFlags& flags) {
  exchange().cleared = StepControl{.flags = flags};
  device_.context->copy(&exchange().cleared, control(), sizeof(StepControl), *device_.stream);
}

const StepControl& DeviceStep::read_sums() {
  device_.context->copy(control(), &exchange().sums, sizeof(StepControl), *device_.stream);
  device_.stream->synchronize();
  return exchange().sums;
}

const DeviceOutcome& DeviceStep::update() {
  give_update();
  device_.stream->synchronize();
  return exchange().outcome;
}

Tensor DeviceStep::on_host(const Tensor& tensor) {
  const std::size_t bytes = tensor.desc().bytes();
  if (shown_.bytes() < bytes) shown_ = device_.context->allocate_staging(bytes);
  device_.context->copy(tensor.data(), shown_.data(), bytes, *device_.stream);
  device_.stream->synchronize();
  return {tensor.desc(), shown_.data()};
}

}  // namespace ronda
