#pragma once
#include <ronda/runtime/core/clock.hpp>

namespace ronda {

/// How long something may stand still. Asked again and again while nothing moves, it looks at the clock now and then.
class Deadline {
 public:
  /// @param seconds  0: for ever
  explicit Deadline(double seconds) noexcept : seconds_(seconds) {}

  /// Something has moved.
  void reset() noexcept { looks_ = 0; }

  [[nodiscard]] bool passed() noexcept {
    constexpr unsigned seldom = 256;
    if (seconds_ == 0 || ++looks_ % seldom != 0) return false;
    const double now = steady_seconds();
    if (looks_ == seldom) since_ = now;
    return now - since_ > seconds_;
  }

 private:
  double seconds_;
  unsigned looks_ = 0;
  double since_ = 0;
};

}  // namespace ronda
