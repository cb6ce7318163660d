#pragma once
#include <ronda/core/buffer.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/step_control.hpp>

namespace ronda {

/// A step's control block where a model computes, and the memory in which the host writes what it begins with and reads
/// what it ends with. On the processor that is the host's all the same, and no wait takes any time.
class ControlBlock {
 public:
  /// With memory of its own over there.
  explicit ControlBlock(const ComputeDevice& device);
  /// @param there  in the device's memory; outlives this object
  ControlBlock(const ComputeDevice& device, StepControl& there);

  /// Over there; what a loss adds to.
  [[nodiscard]] StepControl* there() const noexcept { return there_; }

  /// In the order of the stream: all zero over there but for `flags`. Not while a stream may still do so.
  void clear(const StepFlags& flags = {});
  /// What is over there. The host waits; valid until the next call.
  const StepControl& read();

 private:
  /// In memory that the device copies from and to by itself.
  struct Exchange {
    StepControl prepared, fetched;
  };
  [[nodiscard]] Exchange& exchange() const noexcept { return *reinterpret_cast<Exchange*>(exchange_.data()); }

  ComputeDevice device_;
  Buffer own_, exchange_;
  StepControl* there_;
};

}  // namespace ronda
