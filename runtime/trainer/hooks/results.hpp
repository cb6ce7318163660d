#pragma once
#include <span>

#include <ronda/runtime/strategy/stage_costs.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Writes what a training leaves that has reached its end: predictions, parameters, the summary.
class Results final : public Hook {
 public:
  void before_step(TrainingRun& run, StepFlags& flags) override;
  void on_end(TrainingRun& run) override;

 private:
  void write_results(TrainingRun& run, std::span<const StageCosts> stages) const;

  double startup_seconds_ = 0;
};

}  // namespace ronda
