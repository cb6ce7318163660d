#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/device_step_queue.hpp>

#include <algorithm>
#include <new>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t most_places = 2;  // one is copied to while the other is computed with

std::size_t places_of(const StepQueueOptions& options) {
  return std::min(options.in_flight * options.micro_batches, most_places);
}

}  // namespace

DeviceStepQueue::DeviceStepQueue(ComputeDevice device, Communicator communicator, const StepPlaces& places,
                                 const StepQueueOptions& options)
    : device_(std::move(device)),
      communicator_(std::move(communicator)),
      places_(places),
      fields_(options.fields.begin(), options.fields.end()),
      copies_(device_.context->make_stream(StreamPriority::usual)),
      slots_(options.in_flight * options.micro_batches),
      micro_batches_(options.micro_batches),
      record_(options.record) {
  for (std::size_t i = 0; i < places_of(options); ++i)
    batches_.push_back({Batch(fields_, options.rows, *device_.context), Event()});
  for (Slot& slot : slots_) {
    slot.exchanged = device_.context->allocate_staging(sizeof(Exchanged));
    new (slot.exchanged.data()) Exchanged();
  }
}

std::size_t DeviceStepQueue::bytes_of_batches(const StepQueueOptions& options) {
  return places_of(options) * Batch::bytes_of(options.fields, options.rows);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

void DeviceStepQueue::enqueue(const Batch& batch, const StepFlags& flags, Work work) {
  if (used_ == slots_.size())
    throw LogicError("a step was begun with " + std::to_string(in_flight()) + " in flight; finish one before");
  const bool first = micro_batch() == 0, last = at_last();
  const std::size_t number = (oldest_ + used_) % slots_.size();
  Slot& slot = slots_[number];
  Place& place = batches_[number % batches_.size()];
  Stream& stream = *device_.stream;
  const DeviceDataset* const data = find(batch.source());
  if (data != nullptr)
    std::ranges::copy(std::as_bytes(batch.request()), slot.request.data());
  else
    send(batch, slot, place);
  slot.pinned().prepared = StepControl{.flags = flags};
  const auto step = [&] {
    if (data != nullptr) gather(*data, slot.request.data(), place.batch);
    if (first) device_.context->copy(&slot.pinned().prepared, places_.sums, sizeof(StepControl), stream);
    work(place.batch);
    if (last) fetch_outcome(slot);
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
  if (last) ++steps_;
}

/// By the stream for copies, as soon as the step that had the place before is over.
void DeviceStepQueue::send(const Batch& batch, Slot& slot, Place& place) {
  if (by_hand_) batches_.front().free = device_.stream->record();
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

void DeviceStepQueue::fetch_outcome(const Slot& slot) {
  StepOutcome& outcome = slot.pinned().outcome;
  device_.context->copy(places_.outcome, &outcome.update, sizeof(UpdateOutcome), *device_.stream);
  device_.context->copy(places_.sums, &outcome.sums, sizeof(StepControl), *device_.stream);
}

void DeviceStepQueue::set_micro_batches(std::size_t count) {
  if (count != micro_batches_) throw LogicError("a GPU replays its steps, which always have as many micro-batches");
}

const StepOutcome& DeviceStepQueue::finish() {
  if (in_flight() == 0) throw LogicError("a step was finished and none is in flight");
  const Slot& slot = slots_[oldest_ + micro_batches_ - 1];
  used_ -= micro_batches_;
  oldest_ = used_ == 0 ? 0 : (oldest_ + micro_batches_) % slots_.size();
  slot.done.wait();
  communicator_.require_devices();
  return slot.pinned().outcome;
}

void DeviceStepQueue::drain() noexcept {
  while (in_flight() > 0) try {
      static_cast<void>(finish());
    } catch (...) {  // then it is over too
    }
  while (used_ > 0) try {  // micro-batches without a last
      slots_[(oldest_ + --used_) % slots_.size()].done.wait();
    } catch (...) {
    }
}

const Batch& DeviceStepQueue::place(const Batch& batch) {
  Batch& there = batches_.front().batch;
  if (const DeviceDataset* const data = find(batch.source())) {
    gather(*data, batch.request().data(), there);
    there.note_real(batch.real());
    there.set_first_row(batch.first_row());
  } else {
    there.copy_from(batch, *device_.context, *device_.stream);
    if (batch.pinned()) device_.stream->synchronize();  // whoever filled it may do so again
  }
  by_hand_ = true;
  return there;
}

const StepOutcome& DeviceStepQueue::outcome_by_hand() {
  fetch_outcome(slots_.front());
  device_.stream->synchronize();
  communicator_.require_devices();
  return slots_.front().pinned().outcome;
}

// ---- data that the device keeps -------------------------------------------------------------------------------------

void DeviceStepQueue::keep(const Dataset& data, const GatherRows& gather) {
  if (datasets_.empty()) {
    const std::size_t bytes = Batch::of_samples(data, batches_.front().batch.capacity()).request().size_bytes();
    for (Slot& slot : slots_) slot.request = device_.context->allocate_staging(bytes);
    asked_ = device_.context->allocate(bytes);
  }
  datasets_.emplace_back(data, *device_.context, *device_.stream, gather);
}

void DeviceStepQueue::forget_data() noexcept {
  drain();
  for (Slot& slot : slots_)
    if (std::exchange(slot.recorded, nullptr) != nullptr) slot.recording.reset();
  datasets_.clear();
}

const DeviceDataset* DeviceStepQueue::find(const Dataset* data) const noexcept {
  const auto found = std::ranges::find(datasets_, data, [](const DeviceDataset& each) { return &each.source(); });
  return found == datasets_.end() ? nullptr : &*found;
}

void DeviceStepQueue::gather(const DeviceDataset& data, const void* request, const Batch& batch) {
  device_.context->copy(request, asked_.data(), asked_.bytes(), *device_.stream);
  data.gather(reinterpret_cast<const std::uint64_t*>(asked_.data()), batch, *device_.stream);
}

}  // namespace ronda
