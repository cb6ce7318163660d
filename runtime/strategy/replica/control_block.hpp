#pragma once
#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/step_control.hpp>

namespace ronda {

/// A step's control block in the memory of the computing device, and host memory through which the host writes and
/// reads it. On the CPU both are in host memory.
class ControlBlock {
 public:
  /// Allocates the block on the device.
  explicit ControlBlock(const ComputeDevice& device);
  /// @param there  in the device's memory; outlives this object
  ControlBlock(const ComputeDevice& device, StepControl& there);

  /// Device pointer to the block, to which a loss adds its sums.
  [[nodiscard]] StepControl* there() const noexcept { return there_; }

  /// Sets the block to `value`, in the order of the stream. Not while an earlier `write` is in flight.
  void write(const StepControl& value);
  /// The same with all zeros, except `flags`.
  void clear(const StepFlags& flags = {}) { write(StepControl{.flags = flags}); }
  /// Waits for the device and returns the block's contents; valid until the next call.
  const StepControl& read();

 private:
  /// In pinned memory.
  struct HostSide {
    StepControl prepared, fetched;
  };
  [[nodiscard]] HostSide& host() const noexcept { return *reinterpret_cast<HostSide*>(host_.data()); }

  ComputeDevice device_;
  Buffer own_, host_;
  StepControl* there_;
};

}  // namespace ronda
