#pragma once
#include <cstdint>
#include <string>

#include <ronda/core/message.hpp>
#include <ronda/runtime/trainer/hooks/saving.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Stops, skips or rolls back where a step is not finite: see OnNonfinite. A step was not finite on all ranks or on
/// none. The first hook to see a step: nothing is written that knows of one that is spoiled.
class NonfiniteGuard final : public Hook {
 public:
  /// @param saving  what to roll back by; null: nothing is saved
  explicit NonfiniteGuard(Saving* saving) : saving_(saving) {}

  void on_start(TrainingRun& run) override { rolls_back_ = run.options().on_nonfinite == OnNonfinite::rollback; }
  [[nodiscard]] bool settles_after(std::uint64_t) const override { return rolls_back_; }
  void after_step(TrainingRun& run, const StepReport& report) override;
  void summarize(Summary& summary) const override;

 private:
  void react(TrainingRun& run);
  void roll_back(TrainingRun& run, const Message& why);

  Saving* saving_;
  bool rolls_back_ = false;
  std::uint64_t nonfinite_steps_ = 0, overflow_steps_ = 0, rollbacks_ = 0;
  std::uint64_t in_a_row_ = 0;
};

}  // namespace ronda
