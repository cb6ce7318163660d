#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// How many of `all` micro-batches each rank takes, so that the last one is done as early as can be; each takes at
/// least one. Equal times give equal numbers, as far as `all` divides.
/// @param seconds  that a micro-batch takes each rank; above 0
[[nodiscard]] std::vector<std::size_t> fastest_deal(std::span<const double> seconds, std::size_t all);
/// Seconds until the last rank has done its micro-batches.
[[nodiscard]] double longest(std::span<const double> seconds, std::span<const std::size_t> counts);

/// Deals the micro-batches of a step by what they take each rank (`shares = measured`): after every `shares_every`
/// steps ranks that were slow get fewer of them. One small exchange each time.
class Shares final : public Hook {
 public:
  void on_start(TrainingRun& run) override;
  [[nodiscard]] bool settles_after(std::uint64_t step) const override { return step % every_ == 0; }
  void after_step(TrainingRun& run, const StepReport& report) override;
  void before_save(TrainingRun& run, CheckpointManifest& manifest) override;
  void summarize(Summary& summary) const override;

 private:
  void deal(TrainingRun& run);
  void take(TrainingRun& run, std::vector<std::size_t> counts);
  [[nodiscard]] std::size_t all() const noexcept;
  [[nodiscard]] std::string describe(TrainingRun& run) const;

  std::uint64_t every_ = 1, deals_ = 0;
  std::vector<std::size_t> counts_;  ///< micro-batches of a step, by rank
  std::vector<double> seconds_;      ///< that one took, by rank: the mean of the last measurement and those before
  double measured_ = 0;              ///< seconds of this rank since then, for …
  std::size_t micro_batches_ = 0;    ///< … so many micro-batches
};

}  // namespace ronda
