#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/optim/device_update.hpp>
#include <ronda/runtime/strategy/control_block.hpp>

namespace ronda {

/// What a training step needs beside the model where that computes on a GPU: the batch over there, the update decided
/// there, and pinned memory in which host and GPU hand each other what goes in and what came out.
///
/// Steps are begun one after the other, up to `most_in_flight` before the oldest is finished, so that the device need
/// not wait for the host to look. Each of these has a *slot*: pinned memory of its own, and a recording that reads and
/// writes it. The first step is done call by call; the first that comes to a slot after it is recorded, where the
/// device can and nothing in the step needs the host, and from then on a step is one replay: nothing in it depends on
/// what the host knows, neither the learning rate nor the number of updates. Whoever finishes every step before the
/// next uses one slot. The watchdog sees a replay with collectives inside as one collective, `the recorded step`.
/// A step of several micro-batches has a slot, and a recording, for each of them; the last one's ends the step.
///
/// A batch of values goes to one of two places on the device by a stream of its own, while the step before computes.
/// A batch that names samples is made within the step.
class DeviceStep {
 public:
  /// @param micro_batches  of a step
  DeviceStep(ComputeDevice device, Communicator communicator, std::span<const Field> fields, std::size_t batch_capacity,
             std::size_t most_in_flight, std::size_t micro_batches);
  /// Of the device's memory that batches take where there are so many slots.
  [[nodiscard]] static std::size_t bytes_of_batches(std::span<const Field> fields, std::size_t batch_capacity,
                                                    std::size_t slots);
  DeviceStep(const DeviceStep&) = delete;  // streams know its memory
  ~DeviceStep() { drain(); }

  void set_update(std::unique_ptr<DeviceUpdate> update) noexcept { update_ = std::move(update); }
  /// From now on batches that name samples of `data` are made of what the device holds of it. Throws ResourceError.
  void keep(const Dataset& data, const GatherRows& gather);
  /// Waits for the steps in flight, and keeps no data any more.
  void forget_data() noexcept;
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept { return find(&data) != nullptr; }
  /// Do every step call by call: where the host moves collectives on, or as what a recorded one is held against.
  void record_nothing() noexcept { record_ = false; }

  /// What came of a step.
  struct Result {
    StepControl total;  ///< the sums over all ranks
    DeviceOutcome outcome;
  };

  /// Begins a whole step on a batch of the host; one in pinned memory (Batch::staging) stays as it is until the step is
  /// finished. `passes` gives the device forward, loss and backward of `placed()` and the reduction; where steps are
  /// recorded it is called for the first step and for each recording alone, and then waits for nothing.
  /// Where a step has several micro-batches, `accumulate` comes before, for each but the last; `passes` reduces in the
  /// last alone. The flags are those of the first.
  void begin(const Batch& batch, ControlBlock& control, const StepFlags& flags, const std::function<void()>& passes);
  void accumulate(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                  const std::function<void()>& passes);
  /// Waits for the oldest step that was begun and not finished; valid until the next `begin`. Throws CommunicationError
  /// where the ranks' connection ended.
  const Result& finish();
  /// Waits for the steps in flight, whose results nobody will see.
  void drain() noexcept;
  /// Steps whose last micro-batch was begun.
  [[nodiscard]] std::size_t in_flight() const noexcept { return used_ / micro_batches_; }
  [[nodiscard]] std::size_t most_in_flight() const noexcept { return slots_.size() / micro_batches_; }
  /// The batch over there, of the step that is being begun.
  [[nodiscard]] const Batch& placed() const noexcept { return *placed_; }

  // The same by hand, call by call, with no step in flight; micro-batches before the last may be.

  /// The same batch on the device; valid until the next call.
  const Batch& place(const Batch& batch);
  /// Updates the parameters by the sums in `control`, or leaves them: see DeviceUpdate. The host waits.
  const Result& update(ControlBlock& control);
  /// What layers read is what was trained, after somebody else wrote that. The host waits.
  void round_values() {
    update_->round_values(*device_.stream);
    device_.stream->synchronize();
  }
  void set_updates(std::uint64_t updates) { update_->set_updates(updates, *device_.stream); }

  /// A copy of `tensor` on the host; valid until the next call. The host waits.
  Tensor on_host(const Tensor& tensor);

 private:
  /// In pinned memory.
  struct Exchange {
    StepControl prepared;
    Result result;
  };
  struct Slot {
    Buffer exchange, request;     ///< pinned; the request: what a batch of kept data consists of
    std::optional<Batch> staged;  ///< pinned, for batches that are not; from the first of them on
    std::unique_ptr<Recording> recording;
    const Dataset* recorded = nullptr;  ///< whose batches the recording makes; null: it takes the host's
    Event done;
    [[nodiscard]] Exchange& pinned() const noexcept { return *reinterpret_cast<Exchange*>(exchange.data()); }
  };
  /// A batch on the device, and the point from which on it may be another.
  struct Place {
    Batch batch;
    Event free;
  };

  [[nodiscard]] const DeviceDataset* find(const Dataset* data) const noexcept;
  void give(const Batch& batch, ControlBlock& control, const StepFlags& flags, const std::function<void()>& passes,
            bool last);
  void send(const Batch& batch, Slot& slot, Place& place);
  void gather(const DeviceDataset& data, const void* request, const Batch& batch);
  void give_update(ControlBlock& control, const Slot& slot);

  ComputeDevice device_;
  Communicator communicator_;
  std::vector<Field> fields_;
  std::unique_ptr<Stream> copies_;  ///< batches go to the device by this
  std::vector<DeviceDataset> datasets_;
  Buffer asked_, shown_;  ///< a request on the device; a tensor on the host
  std::vector<Place> places_;
  const Batch* placed_ = nullptr;
  std::vector<Slot> slots_;
  std::size_t micro_batches_;
  std::size_t oldest_ = 0, used_ = 0;  ///< slots
  std::unique_ptr<DeviceUpdate> update_;
  bool record_ = true;
  bool by_hand_ = false;  ///< the first place was filled by `place` since the last step
  std::uint64_t steps_ = 0;
};

}  // namespace ronda
