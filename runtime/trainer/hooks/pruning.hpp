#pragma once
#include <cstdint>

#include <ronda/optim/pruning.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Sets more and more of the weights to zero, after the steps that a PruningSchedule says; between these the updater
/// keeps them so. Nothing of it is saved: what was pruned is what is zero.
class Pruning final : public Hook {
 public:
  void on_start(TrainingRun& run) override;
  [[nodiscard]] bool settles_after(std::uint64_t step) const override { return schedule_.prunes_after(step); }
  [[nodiscard]] bool needs_replicas_after(std::uint64_t step) const override { return schedule_.prunes_after(step); }
  void after_step(TrainingRun& run, const StepReport& report) override;
  void after_epoch(TrainingRun& run, const EpochReport& report) override;
  void after_repeat(TrainingRun& run) override { prune(run); }
  void on_end(TrainingRun& run) override { found_ = run.strategy().state().zeros(); }
  void summarize(Summary& summary) const override { summary.pruning = {found_.weights, found_.zeros}; }

 private:
  void prune(TrainingRun& run);

  PruningSchedule schedule_;
  std::uint64_t states_were_set_ = 0;
  TrainingState::Zeros found_;
};

}  // namespace ronda
