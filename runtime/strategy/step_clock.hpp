#pragma once
#include <utility>

#include <ronda/core/clock.hpp>
#include <ronda/core/event_sink.hpp>

namespace ronda {

/// Where the time of a step goes on the computing thread.
class StepClock {
 public:
  /// The time up to here belongs to no phase.
  void resume() noexcept { last_ = steady_seconds(); }
  /// The time since the last call belongs to `phase`.
  void lap(double StepTimes::*phase) noexcept {
    const double now = steady_seconds();
    times_.*phase += now - last_;
    last_ = now;
  }
  /// Of the time that went to `from`, these seconds belong to `to`.
  void move(double seconds, double StepTimes::*from, double StepTimes::*to) noexcept {
    times_.*from -= seconds;
    times_.*to += seconds;
  }
  /// All since the last `take`.
  StepTimes take() noexcept { return std::exchange(times_, {}); }

 private:
  StepTimes times_;
  double last_ = 0;
};

}  // namespace ronda
