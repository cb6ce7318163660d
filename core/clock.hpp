#pragma once
#include <chrono>

namespace ronda {

/// Seconds of the system's monotonic clock, with an arbitrary origin; for differences.
[[nodiscard]] inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The time by which a world waits and decides: timeouts, deadlines, pauses, intervals. A fabric has one
/// (`Fabric::clock`), for all that runs in its world; a test passes a clock of its own and sets the time by hand. It
/// outlives the world, and any thread may read it.
///
/// `steady_seconds()` remains where no world's time is at hand, or a duration is only reported:
/// - measurements: StepClock, the exchanges' exposed seconds, the timing of candidates (layers/program.cpp,
///   Stage, NodeCosts), training and audit times, StepStatistics; the costs of messages use `Fabric::seconds`. The
///   interval of LeaveNotice follows from measured steps;
/// - files and terminals: the flushes of metrics and TensorBoard files, the redrawing of the console;
/// - processes: the supervisor of `ronda_run`, the last waits of `launch`, `Turn::take_within`, and what waits for a
///   thread to end.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Seconds since an arbitrary origin; never decreases.
  [[nodiscard]] virtual double now() const noexcept = 0;
};

/// The system's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] double now() const noexcept override { return steady_seconds(); }
};

/// The clock of every world that has no other one.
[[nodiscard]] inline const Clock& steady_clock() noexcept {
  static const SteadyClock clock;
  return clock;
}

}  // namespace ronda
