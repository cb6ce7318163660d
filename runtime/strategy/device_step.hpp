#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <ronda/data/batch.hpp>
#include <ronda/optim/device_update.hpp>
#include <ronda/runtime/core/device_context.hpp>
#include <ronda/runtime/core/step_control.hpp>

namespace ronda {

/// What a strategy computes on, and the stream that all its work goes to.
struct ComputeDevice {
  std::shared_ptr<DeviceContext> context;
  std::shared_ptr<Stream> stream;

  static ComputeDevice on(std::shared_ptr<DeviceContext> context);
};

/// What a training step needs beside the model where that computes on a GPU: the batch over there, the control block in
/// the GPU's memory, the update decided there, and pinned memory in which host and GPU hand each other what goes in and
/// what came out.
///
/// The first step is done call by call. The second is recorded, and from then on a step is one replay: nothing in it
/// depends on what the host knows, neither the learning rate nor the number of updates. The host waits once a step, at
/// its end, for the sums and the outcome.
class DeviceStep {
 public:
  DeviceStep(ComputeDevice device, std::span<const Field> fields, std::size_t batch_capacity);

  void set_update(std::unique_ptr<DeviceUpdate> update) noexcept { update_ = std::move(update); }
  /// Do every step call by call: what a recorded one is held against.
  void record_nothing() noexcept { record_ = false; }

  /// A whole step on a batch of the host. `passes` gives the device forward, loss and backward of `placed()`, with
  /// `control()`, and waits for nothing; it is called in the first two steps alone.
  const DeviceOutcome& run(const Batch& batch, const StepFlags& flags, const std::function<void()>& passes);
  /// The batch over there.
  [[nodiscard]] const Batch& placed() const noexcept { return batch_; }

  // The same by hand, call by call.

  /// The same batch on the device; valid until the next call.
  const Batch& place(const Batch& batch);
  /// Clears the control block over there, but for these flags.
  void begin(const StepFlags& flags);
  /// Over there; what a loss adds to.
  [[nodiscard]] StepControl* control() const noexcept;
  /// As `update`, `run` or `read_sums` read them last.
  [[nodiscard]] const StepControl& sums() const noexcept { return exchange().sums; }
  /// What is in the control block after all that the stream was given; the host waits.
  const StepControl& read_sums();
  /// Updates the parameters, or leaves them: see DeviceUpdate. The host waits.
  const DeviceOutcome& update();
  void set_updates(std::uint64_t updates) { update_->set_updates(updates, *device_.stream); }

  /// A copy of `tensor` on the host; valid until the next call. The host waits.
  Tensor on_host(const Tensor& tensor);

 private:
  /// What host and device hand each other, in pinned memory.
  struct Exchange {
    StepControl cleared, sums;
    DeviceOutcome outcome;
  };
  [[nodiscard]] Exchange& exchange() const noexcept { return *reinterpret_cast<Exchange*>(exchange_.data()); }

  void give_inputs();
  void give_update();

  ComputeDevice device_;
  Batch staged_, batch_;
  Buffer control_, exchange_, shown_;
  std::unique_ptr<DeviceUpdate> update_;
  std::unique_ptr<Recording> recording_;
  bool record_ = true;
  std::uint64_t steps_ = 0;
};

}  // namespace ronda
