#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include <ronda/core/device_context.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda::cuda {

/// As DeviceContext::add.
void add(const Tensor& from, const float* more, const Tensor& to, Stream& stream);

/// As DeviceContext::make_hash.
std::unique_ptr<DeviceHash> make_hash(DeviceContext& context, std::span<const std::span<const std::byte>> pieces);

}  // namespace ronda::cuda
