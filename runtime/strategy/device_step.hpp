#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/device_dataset.hpp>
#include <ronda/optim/device_update.hpp>
#include <ronda/runtime/core/device_context.hpp>
#include <ronda/runtime/core/compute_device.hpp>
#include <ronda/runtime/strategy/control_block.hpp>

namespace ronda {

/// What a training step needs beside the model where that computes on a GPU: the batch over there, the update decided
/// there, and pinned memory in which host and GPU hand each other what goes in and what came out.
///
/// The first step is done call by call. The second is recorded, where the device can and nothing in the step needs the
/// host, and from then on a step is one replay: nothing in it depends on what the host knows, neither the learning rate
/// nor the number of updates. The host waits once a step, at its end, for the sums and the outcome; the watchdog sees a
/// replay with collectives inside as one collective, `the recorded step`.
class DeviceStep {
 public:
  DeviceStep(ComputeDevice device, Communicator communicator, std::span<const Field> fields,
             std::size_t batch_capacity);

  void set_update(std::unique_ptr<DeviceUpdate> update) noexcept { update_ = std::move(update); }
  /// From now on batches that name samples of `data` are made of what the device holds of it. Throws ResourceError.
  void keep(const Dataset& data, const GatherRows& gather);
  [[nodiscard]] bool keeps(const Dataset& data) const noexcept { return find(&data) != nullptr; }
  /// Do every step call by call: where the host moves collectives on, or as what a recorded one is held against.
  void record_nothing() noexcept { record_ = false; }

  /// A whole step on a batch of the host. `passes` gives the device forward, loss and backward of `placed()` and the
  /// reduction; it is called in the first two steps alone, where steps are recorded, and then waits for nothing. Throws
  /// CommunicationError where the ranks' connection ended.
  const DeviceOutcome& run(const Batch& batch, ControlBlock& control, const StepFlags& flags,
                           const std::function<void()>& passes);
  /// The batch over there.
  [[nodiscard]] const Batch& placed() const noexcept { return batch_; }

  // The same by hand, call by call.

  /// The same batch on the device; valid until the next call.
  const Batch& place(const Batch& batch);
  /// Updates the parameters by the sums in `control`, or leaves them: see DeviceUpdate. The host waits.
  const DeviceOutcome& update(ControlBlock& control);
  void set_updates(std::uint64_t updates) { update_->set_updates(updates, *device_.stream); }

  /// A copy of `tensor` on the host; valid until the next call. The host waits.
  Tensor on_host(const Tensor& tensor);

 private:
  [[nodiscard]] const DeviceDataset* find(const Dataset* data) const noexcept;
  [[nodiscard]] std::uint64_t* asked() const noexcept { return reinterpret_cast<std::uint64_t*>(asked_.data()); }
  void give_update(ControlBlock& control);
  const DeviceOutcome& wait_for_outcome();
  [[nodiscard]] DeviceOutcome& outcome() const noexcept { return *reinterpret_cast<DeviceOutcome*>(outcome_.data()); }

  ComputeDevice device_;
  Communicator communicator_;
  Batch staged_, batch_;
  std::vector<DeviceDataset> datasets_;
  Buffer request_, asked_;  ///< what a batch of theirs consists of, for the device to fetch, and there
  Buffer outcome_, shown_;
  std::unique_ptr<DeviceUpdate> update_;
  std::unique_ptr<Recording> recording_;
  const Dataset* recorded_ = nullptr;  ///< whose batches the recording makes; null: it copies the host's
  bool record_ = true;
  std::uint64_t steps_ = 0;
};

}  // namespace ronda
