#pragma once
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda::cuda {

/// As DeviceContext::add.
void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream);

}  // namespace ronda::cuda
