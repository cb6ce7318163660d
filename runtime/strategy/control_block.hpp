#pragma once
#include <ronda/core/buffer.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/step_control.hpp>

namespace ronda {

/// A step's control block in the memory of the device that computes, and the memory through which the host writes it
/// and reads it. On the processor both are the host's.
class ControlBlock {
 public:
  /// With memory of its own on the device.
  explicit ControlBlock(const ComputeDevice& device);
  /// @param there  in the device's memory; outlives this object
  ControlBlock(const ComputeDevice& device, StepControl& there);

  /// A device pointer; a loss adds its sums here.
  [[nodiscard]] StepControl* there() const noexcept { return there_; }

  /// Stream-ordered: becomes `value`. Not while an earlier `write` is under way.
  void write(const StepControl& value);
  /// Likewise, all zero but for `flags`.
  void clear(const StepFlags& flags = {}) { write(StepControl{.flags = flags}); }
  /// The numbers on the device. The host waits; valid until the next call.
  const StepControl& read();

 private:
  /// In memory that the device copies from and to by itself.
  struct HostSide {
    StepControl prepared, fetched;
  };
  [[nodiscard]] HostSide& host() const noexcept { return *reinterpret_cast<HostSide*>(host_.data()); }

  ComputeDevice device_;
  Buffer own_, host_;
  StepControl* there_;
};

}  // namespace ronda
