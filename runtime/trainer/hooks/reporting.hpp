#pragma once
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Tells the sinks of steps and epochs, and at each epoch's end which rank the others waited for. One small exchange an
/// epoch; nothing in a step.
class Reporting final : public Hook {
 public:
  void on_start(TrainingRun& run) override {
    run.sink().on_start({.step = run.step(),
                         .epoch = run.progress().current.epoch,
                         .metric = run.metric(),
                         .validates = run.validates(),
                         .steps = run.setup().total_steps});
  }
  void after_step(TrainingRun& run, const StepReport& report) override { run.sink().on_step(report); }
  void after_epoch(TrainingRun& run, const EpochReport& report) override;
};

}  // namespace ronda
