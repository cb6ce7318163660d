#pragma once
#include <ronda/core/buffer.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// Makes tensors readable on the host.
class HostCopy {
 public:
  explicit HostCopy(ComputeDevice device) : device_(std::move(device)) {}
  /// `tensor` itself if it is in host memory; otherwise a copy, valid until the next call, made after all work of the
  /// device's stream. The host waits.
  [[nodiscard]] Tensor of(const Tensor& tensor);

 private:
  ComputeDevice device_;
  Buffer memory_;
};

}  // namespace ronda
