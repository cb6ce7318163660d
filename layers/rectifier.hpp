#pragma once
#include <ronda/core/host_device.hpp>

namespace ronda {

/// max(x, 0), as every ReLU here has it: NaN stays NaN, so that nobody takes a spoiled number for a sound one.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float rectified(float x) { return x <= 0 ? 0.0F : x; }

/// The gradient of x, where y = rectified(x) (or x itself) and y's gradient is `gradient`; it passes where y is NaN, as
/// in PyTorch.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float rectified_gradient(float y, float gradient) {
  return y <= 0 ? 0.0F : gradient;
}

/// Whether `x` takes the place of `best` as the maximum: of equals the first stays, a NaN beats all, as in PyTorch.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE bool beats(float x, float best) { return x > best || x != x; }

}  // namespace ronda
