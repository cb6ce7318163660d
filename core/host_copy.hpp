#pragma once
#include <ronda/core/buffer.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// Tensors as the host reads them.
class HostCopy {
 public:
  explicit HostCopy(ComputeDevice device) : device_(std::move(device)) {}
  /// `tensor` itself where it lies in the host's memory; otherwise a copy of it, valid until the next call, after all
  /// work of the device's stream. The host waits.
  [[nodiscard]] Tensor of(const Tensor& tensor);

 private:
  ComputeDevice device_;
  Buffer memory_;
};

}  // namespace ronda
