#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include <ronda/core/event_sink.hpp>

namespace ronda {

/// Speed of training. Rates and quantiles leave out the first `warmup` steps, unless there are fewer than 20 steps.
/// Uses constant memory.
class StepStatistics final : public EventSink {
 public:
  static constexpr std::uint64_t warmup = 10;

  StepStatistics();

  void on_step(const StepReport& report) override;

  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }  ///< total over all ranks
  [[nodiscard]] double seconds() const noexcept { return seconds_; }         ///< total step time
  [[nodiscard]] const StepTimes& times() const noexcept { return times_; }   ///< sums over all steps
  /// Rate over all ranks; 0 before the first step.
  [[nodiscard]] double samples_per_second() const noexcept;
  /// The step time that the given share of steps does not exceed (0.5: the median), within 0.4 %; 0 before the first
  /// step.
  [[nodiscard]] double microseconds(double share) const;

 private:
  [[nodiscard]] bool skips_warmup() const noexcept { return steps_ >= 2 * warmup; }

  std::uint64_t steps_ = 0, samples_ = 0, warmup_samples_ = 0;
  double seconds_ = 0, warmup_seconds_ = 0;
  StepTimes times_;
  std::vector<std::uint32_t> histogram_;  ///< number of steps after the warm-up, by the logarithm of their time
  std::array<std::size_t, warmup> warmup_buckets_{};
};

}  // namespace ronda
