#pragma once
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Warns, once, if a training without a folder of checkpoints is asked to end early (TrainingOptions::leave): it could
/// not be resumed, so it continues.
class LeaveUnsaved final : public Hook {
 public:
  void before_step(TrainingRun& run, StepFlags& /*flags*/) override {
    if (warned_ || !run.options().leave()) return;
    warned_ = true;
    run.sink().on_message(Severity::warning, "the training is asked to end early, and nothing of it is saved without " +
                                                 setting("checkpoint_dir") + ": it continues");
  }

 private:
  bool warned_ = false;
};

}  // namespace ronda
