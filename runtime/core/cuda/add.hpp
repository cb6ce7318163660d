#pragma once
#include <ronda/runtime/core/stream.hpp>
#include <ronda/runtime/core/tensor.hpp>

namespace ronda::cuda {

/// As DeviceContext::add.
void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream);

}  // namespace ronda::cuda
