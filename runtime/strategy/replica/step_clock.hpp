#pragma once
#include <utility>

#include <ronda/core/clock.hpp>
#include <ronda/core/event_sink.hpp>

namespace ronda {

/// Measures how the computing thread's time of a step is divided into phases.
class StepClock {
 public:
  /// Excludes the time since the last call from all phases.
  void resume() noexcept { last_ = steady_seconds(); }
  /// Adds the time since the last call to `phase`.
  void lap(double StepTimes::*phase) noexcept {
    const double now = steady_seconds();
    times_.*phase += now - last_;
    last_ = now;
  }
  /// Moves `seconds` from phase `from` to phase `to`.
  void move(double seconds, double StepTimes::*from, double StepTimes::*to) noexcept {
    times_.*from -= seconds;
    times_.*to += seconds;
  }
  /// Returns the times since the last `take`, and resets them.
  StepTimes take() noexcept { return std::exchange(times_, {}); }

 private:
  StepTimes times_;
  double last_ = 0;
};

}  // namespace ronda
