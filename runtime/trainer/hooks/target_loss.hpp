#pragma once
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Ends a training after the first epoch whose tested loss (TrainingRun::tested_loss) is at most `target_loss`.
class TargetLoss final : public Hook {
 public:
  /// A resumed training that has reached its target ends at once. Throws InputError for a target that is not finite.
  void on_start(TrainingRun& run) override;
  void after_epoch(TrainingRun& run, const EpochReport&) override { end_if_reached(run); }
  void summarize(Summary& summary) const override;

 private:
  void end_if_reached(TrainingRun& run);

  bool reached_ = false;
};

}  // namespace ronda
