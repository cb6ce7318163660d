#pragma once
#include <ronda/core/host_device.hpp>

namespace ronda {

/// max(x, 0), used by every ReLU. NaN stays NaN, so that errors are not hidden.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float rectified(float x) { return x <= 0 ? 0.0F : x; }

/// The gradient of x, where y = rectified(x) (or x itself) and y's gradient is `gradient`. If y is NaN the result is
/// `gradient`, as in PyTorch.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float rectified_gradient(float y, float gradient) {
  return y <= 0 ? 0.0F : gradient;
}

/// Whether `x` replaces `best` as the maximum: the first of equals wins, and NaN wins over all, as in PyTorch.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE bool beats(float x, float best) { return x > best || x != x; }

}  // namespace ronda
