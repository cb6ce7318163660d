#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/device_step.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t most_places = 2;  // one is copied to while the other is computed with

}  // namespace

DeviceStep::DeviceStep(ComputeDevice device, Communicator communicator, std::span<const Field> fields,
                       std::size_t batch_capacity, std::size_t most_in_flight, std::size_t micro_batches)
    : device_(std::move(device)),
      communicator_(std::move(communicator)),
      fields_(fields.begin(), fields.end()),
      copies_(device_.context->make_stream(StreamPriority::usual)),
      slots_(most_in_flight * micro_batches),
      micro_batches_(micro_batches) {
  for (std::size_t i = 0; i < std::min(slots_.size(), most_places); ++i)
    places_.push_back({Batch(fields, batch_capacity, *device_.context), Event()});
  for (Slot& slot : slots_) {
    slot.exchange = device_.context->allocate_staging(sizeof(Exchange));
    new (slot.exchange.data()) Exchange();
  }
}

std::size_t DeviceStep::bytes_of_batches(std::span<const Field> fields, std::size_t batch_capacity, std::size_t slots) {
  return std::min(slots, most_places) * Batch::bytes_of(fields, batch_capacity);
}

void DeviceStep::drain() noexcept {
  while (in_flight() > 0) try {
      static_cast<void>(finish());
    } catch (...) {  // then it is over too
    }
  while (used_ > 0) try {  // micro-batches without a last
      slots_[(oldest_ + --used_) % slots_.size()].done.wait();
    } catch (...) {
    }
}

void DeviceStep::keep(const Dataset& data, const GatherRows& gather) {
  if (datasets_.empty()) {
    const std::size_t bytes = Batch::of_samples(data, places_.front().batch.capacity()).request().size_bytes();
    for (Slot& slot : slots_) slot.request = device_.context->allocate_staging(bytes);
    asked_ = device_.context->allocate(bytes);
  }
  datasets_.emplace_back(data, *device_.context, *device_.stream, gather);
}

void DeviceStep::forget_data() noexcept {
  drain();
  for (Slot& slot : slots_)
    if (std::exchange(slot.recorded, nullptr) != nullptr) slot.recording.reset();
  datasets_.clear();
}

const DeviceDataset* DeviceStep::find(const Dataset* data) const noexcept {
  const auto found = std::ranges::find(datasets_, data, [](const DeviceDataset& each) { return &each.source(); });
  return found == datasets_.end() ? nullptr : &*found;
}

void DeviceStep::begin(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                       const std::function<void()>& passes) {
  if (used_ % micro_batches_ + 1 != micro_batches_)
    throw LogicError("a step of " + std::to_string(micro_batches_) + " micro-batches was begun with " +
                     std::to_string(used_ % micro_batches_) + " before the last");
  give(batch, control, flags, passes, true);
  ++steps_;
}

void DeviceStep::accumulate(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                            const std::function<void()>& passes) {
  if (used_ % micro_batches_ + 1 == micro_batches_)
    throw LogicError("a step has " + std::to_string(micro_batches_) + " micro-batches, and the last one ends it");
  give(batch, control, flags, passes, false);
}

void DeviceStep::give(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                      const std::function<void()>& passes, bool last) {
  if (used_ == slots_.size())
    throw LogicError("a step was begun with " + std::to_string(in_flight()) + " in flight; finish one before");
  const bool first = used_ % micro_batches_ == 0;
  const std::size_t number = (oldest_ + used_) % slots_.size();
  Slot& slot = slots_[number];
  Place& place = places_[number % places_.size()];
  placed_ = &place.batch;
  Stream& stream = *device_.stream;
  const DeviceDataset* const data = find(batch.source());
  if (data != nullptr)
    std::ranges::copy(std::as_bytes(batch.request()), slot.request.data());
  else
    send(batch, slot, place);
  slot.pinned().prepared = StepControl{.flags = flags};
  const auto step = [&] {
    if (data != nullptr) gather(*data, slot.request.data(), place.batch);
    if (first) device_.context->copy(&slot.pinned().prepared, control.there(), sizeof(StepControl), stream);
    passes();
    if (last) give_update(control, slot);
  };
  if (record_ && steps_ > 0 && !slot.recording) {
    slot.recording = device_.context->record(stream, step);
    if (last) slot.recording = communicator_.watched(std::move(slot.recording), "the recorded step");
    slot.recorded = batch.source();
  }
  if (slot.recording && slot.recorded == batch.source())
    slot.recording->replay(stream);
  else
    step();
  slot.done = place.free = stream.record();
  ++used_;
}

/// By the stream for copies, as soon as the step that had the place before is over.
void DeviceStep::send(const Batch& batch, Slot& slot, Place& place) {
  if (by_hand_) places_.front().free = device_.stream->record();
  by_hand_ = false;
  const Batch* from = &batch;
  if (!batch.pinned()) {
    if (!slot.staged) slot.staged.emplace(Batch::staging(fields_, batch.capacity(), *device_.context));
    slot.staged->copy_from(batch);
    from = &*slot.staged;
  }
  copies_->wait(place.free);
  place.batch.copy_from(*from, *device_.context, *copies_);
  device_.stream->wait(copies_->record());
}

void DeviceStep::gather(const DeviceDataset& data, const void* request, const Batch& batch) {
  device_.context->copy(request, asked_.data(), asked_.bytes(), *device_.stream);
  data.gather(reinterpret_cast<const std::uint64_t*>(asked_.data()), batch, *device_.stream);
}

void DeviceStep::give_update(ControlBlock& control, const Slot& slot) {
  Result& result = slot.pinned().result;
  update_->step(control.there(), *device_.stream);
  device_.context->copy(update_->outcome(), &result.outcome, sizeof(DeviceOutcome), *device_.stream);
  device_.context->copy(control.there(), &result.total, sizeof(StepControl), *device_.stream);
}

const DeviceStep::Result& DeviceStep::finish() {
  if (in_flight() == 0) throw LogicError("a step was finished and none is in flight");
  const Slot& slot = slots_[oldest_ + micro_batches_ - 1];
  used_ -= micro_batches_;
  oldest_ = used_ == 0 ? 0 : (oldest_ + micro_batches_) % slots_.size();
  slot.done.wait();
  communicator_.require_devices();
  return slot.pinned().result;
}

const Batch& DeviceStep::place(const Batch& batch) {
  Batch& there = places_.front().batch;
  if (const DeviceDataset* const data = find(batch.source())) {
    gather(*data, batch.request().data(), there);
    there.note_real(batch.real());
  } else {
    there.copy_from(batch, *device_.context, *device_.stream);
    if (batch.pinned()) device_.stream->synchronize();  // whoever filled it may do so again
  }
  by_hand_ = true;
  return there;
}

const DeviceStep::Result& DeviceStep::update(ControlBlock& control) {
  if (in_flight() > 0) throw LogicError("an update by hand with steps in flight");
  give_update(control, slots_.front());
  device_.stream->synchronize();
  used_ = 0;  // its micro-batches are over
  communicator_.require_devices();
  return slots_.front().pinned().result;
}

Tensor DeviceStep::on_host(const Tensor& tensor) {
  const std::size_t bytes = tensor.desc().bytes();
  if (shown_.bytes() < bytes) shown_ = device_.context->allocate_staging(bytes);
  device_.context->copy(tensor.data(), shown_.data(), bytes, *device_.stream);
  device_.stream->synchronize();
  return {tensor.desc(), shown_.data()};
}

}  // namespace ronda
