#pragma once
#include <atomic>

#include <ronda/core/clock.hpp>

namespace ronda::test {

/// Stands still until the test moves it.
class TestClock final : public Clock {
 public:
  [[nodiscard]] double now() const noexcept override { return time_; }
  void advance(double seconds) noexcept { time_ = time_ + seconds; }

 private:
  std::atomic<double> time_ = 1024;  ///< a power of two: sums with multiples of 1/16 are exact
};

}  // namespace ronda::test
