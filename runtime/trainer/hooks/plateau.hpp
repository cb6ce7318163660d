#pragma once

#include <ronda/runtime/trainer/hooks/improvement.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Ends a training whose tested loss (TrainingRun::tested_loss) has not improved for `early_stopping` epochs.
class EarlyStopping final : public Hook {
 public:
  void on_start(TrainingRun& run) override;
  void after_epoch(TrainingRun& run, const EpochReport& report) override;
  void before_save(TrainingRun& run, CheckpointManifest& manifest) override;
  void summarize(Summary& summary) const override;

 private:
  void end_if_due(TrainingRun& run);

  Improvement loss_;
  bool ended_ = false;
};

/// Multiplies the learning rate with `reduce_rate_factor` each time the tested loss has not improved for
/// `reduce_rate_after` epochs: PyTorch's ReduceLROnPlateau with a threshold of 0.
class RateReduction final : public Hook {
 public:
  void on_start(TrainingRun& run) override;
  void after_epoch(TrainingRun& run, const EpochReport& report) override;
  void before_save(TrainingRun& run, CheckpointManifest& manifest) override;
  void summarize(Summary& summary) const override { summary.monitor.rate_factor = factor_; }

 private:
  Improvement loss_;
  double factor_ = 1;
};

}  // namespace ronda
