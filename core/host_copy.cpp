#include <ronda/core/host_copy.hpp>

namespace ronda {

Tensor HostCopy::of(const Tensor& tensor) {
  if (tensor.device().kind == DeviceKind::cpu) return tensor;
  const std::size_t bytes = tensor.desc().bytes();
  if (memory_.bytes() < bytes) memory_ = device_.context->allocate_staging(bytes);
  device_.context->copy(tensor.data(), memory_.data(), bytes, *device_.stream);
  device_.stream->synchronize();
  return {tensor.desc(), memory_.data()};
}

}  // namespace ronda
