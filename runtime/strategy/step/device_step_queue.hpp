#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ronda/core/device_context.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {

/// A GPU's.
///
/// Each micro-batch that may be in flight has a *slot*: pinned memory in which host and GPU hand each other what goes
/// in and what came out, and a recording that reads and writes it. The first step is done call by call; the first that
/// comes to a slot after it is recorded, where the device can, and from then on a step is one replay: nothing in it
/// depends on what the host knows, neither the learning rate nor the number of updates. Whoever finishes every step
/// before the next uses one slot. The watchdog sees a replay with collectives inside as one collective, `the recorded
/// step`.
///
/// A batch of values goes to one of two places on the device by a stream of its own, while the step before computes.
/// A batch that names samples is made within the step.
class DeviceStepQueue final : public StepQueue {
 public:
  DeviceStepQueue(ComputeDevice device, Communicator communicator, const StepPlaces& places,
                  const StepQueueOptions& options);
  DeviceStepQueue(const DeviceStepQueue&) = delete;  // streams know its memory
  ~DeviceStepQueue() override { drain(); }
  /// Of the device's memory.
  [[nodiscard]] static std::size_t bytes_of_batches(const StepQueueOptions& options);

  void enqueue(const Batch& batch, const StepFlags& flags, Work work) override;
  const StepOutcome& finish() override;
  void drain() noexcept override;
  [[nodiscard]] std::size_t micro_batches() const noexcept override { return micro_batches_; }
  void set_micro_batches(std::size_t count) override;
  [[nodiscard]] std::size_t micro_batch() const noexcept override { return used_ % micro_batches_; }
  [[nodiscard]] bool at_last() const noexcept override { return micro_batch() + 1 == micro_batches_; }
  [[nodiscard]] std::size_t in_flight() const noexcept override { return used_ / micro_batches_; }
  [[nodiscard]] std::size_t max_in_flight() const noexcept override { return slots_.size() / micro_batches_; }

  const Batch& place(const Batch& batch) override;
  void end_by_hand() noexcept override { used_ = 0; }
  const StepOutcome& outcome_by_hand() override;

  [[nodiscard]] std::size_t bytes_to_keep(const Dataset& data) const override { return DeviceDataset::bytes_of(data); }
  void keep(const Dataset& data, const GatherRows& gather) override;
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept override { return find(&data) != nullptr; }
  void forget_data() noexcept override;

 private:
  /// In pinned memory.
  struct Exchanged {
    StepControl prepared;
    StepOutcome outcome;
  };
  struct Slot {
    Buffer exchanged, request;    ///< pinned; the request: the samples of a batch of kept data
    std::optional<Batch> staged;  ///< pinned, for batches that are not; from the first of them on
    std::unique_ptr<Recording> recording;
    const Dataset* recorded = nullptr;  ///< whose batches the recording makes; null: it takes the host's
    Event done;
    [[nodiscard]] Exchanged& pinned() const noexcept { return *reinterpret_cast<Exchanged*>(exchanged.data()); }
  };
  /// A batch on the device, and the point from which on it may be another.
  struct Place {
    Batch batch;
    Event free;
  };

  [[nodiscard]] const DeviceDataset* find(const Dataset* data) const noexcept;
  void send(const Batch& batch, Slot& slot, Place& place);
  void gather(const DeviceDataset& data, const void* request, const Batch& batch);
  void fetch_outcome(const Slot& slot);

  ComputeDevice device_;
  Communicator communicator_;
  StepPlaces places_;
  std::vector<Field> fields_;
  std::unique_ptr<Stream> copies_;  ///< batches go to the device by this
  std::vector<DeviceDataset> datasets_;
  Buffer asked_;  ///< a request on the device
  std::vector<Place> batches_;
  std::vector<Slot> slots_;
  std::size_t micro_batches_;
  std::size_t oldest_ = 0, used_ = 0;  ///< slots
  bool record_;
  bool by_hand_ = false;  ///< the first place was filled by `place` since the last step
  std::uint64_t steps_ = 0;
};

}  // namespace ronda
