#pragma once
#include <ronda/runtime/checkpoint/checkpointer.hpp>
#include <ronda/runtime/trainer/leave.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Saves a training on the way, at its end, and where it is preempted: see Checkpointer.
class Saving final : public Hook {
 public:
  /// Opens the folder for this run. Collective; throws InputError, agreed.
  Saving(const Communicator& communicator, const TrainingOptions& options, EventSink& sink);

  /// Whether any rank is to end now, before the long work of planning: there is nothing to save then. Collective.
  [[nodiscard]] bool leaves_at_once();
  /// Waits for the checkpoint under way. Collective. True where the last save is there.
  bool finish() { return checkpointer_.finish(); }
  /// After on_end: why the training's last checkpoint is missing; empty if it exists. The same on all ranks.
  [[nodiscard]] Message failure() const;

  void on_start(TrainingRun& run) override;
  void before_step(TrainingRun& run, StepFlags& flags) override;
  [[nodiscard]] bool settles_after(std::uint64_t step) const override;
  [[nodiscard]] bool needs_replicas_after(std::uint64_t step) const override { return settles_after(step); }
  void after_step(TrainingRun& run, const StepReport& report) override;
  void on_end(TrainingRun& run) override;
  void summarize(Summary& summary) const override;

 private:
  [[nodiscard]] Message reason_of_any_rank(const Message& mine) const;
  void save_last(TrainingRun& run);
  [[nodiscard]] bool is_saved_elsewhere(TrainingRun& run) const;
  void require_some_checkpoint(TrainingRun& run, bool saved) const;

  std::filesystem::path directory_;
  Communicator communicator_;
  EventSink& sink_;
  LeaveRequest leave_;
  Message reason_;           ///< why this rank has asked all to leave; empty: it has not
  bool due_ = false;         ///< a save waits until no step is under way
  bool saved_last_ = false;  ///< the training's end is saved
  bool unsaved_ = false;     ///< the last save failed
  Checkpointer checkpointer_;
};

}  // namespace ronda
