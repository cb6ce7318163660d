#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include <ronda/core/device_context.hpp>
#include <ronda/core/device_hash.hpp>

namespace ronda::cuda {

/// As DeviceContext::make_hash.
std::unique_ptr<DeviceHash> make_hash(DeviceContext& context, std::span<const std::span<const std::byte>> pieces);

}  // namespace ronda::cuda
