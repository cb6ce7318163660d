#pragma once
#include <chrono>

namespace ronda {

/// Seconds of a monotonic clock with an arbitrary origin; for differences.
[[nodiscard]] inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace ronda
