#pragma once
#include <cstddef>

#include <ronda/runtime/core/stream.hpp>

namespace ronda::cuda {

/// As DeviceContext::add.
void add(const float* from, float* to, std::size_t count, Stream& stream);

}  // namespace ronda::cuda
