#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/runtime/checkpoint/checkpointer.hpp>
#include <ronda/runtime/io/fan_out.hpp>
#include <ronda/runtime/io/step_statistics.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/leave.hpp>
#include <ronda/runtime/trainer/plan_store.hpp>
#include <ronda/runtime/trainer/resumption.hpp>
#include <ronda/runtime/trainer/spoiled_loss.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// Trains a model for some epochs, tests it after each, saves and resumes it, and writes what was asked for: the loop
/// that a user would otherwise write around a MirroredStrategy.
///
///     Trainer trainer(world, model, loss, {.epochs = 5, .learning_rate = 0.1});
///     Evaluation result = trainer.fit(train, test);
class Trainer {
 public:
  /// @param sink  is told of everything on rank 0; null: silence. Model, loss and sink outlive the trainer. Not
  /// collective.
  Trainer(World& world, Layer& model, Loss& loss, TrainingOptions options, EventSink* sink = nullptr);
  Trainer(const Trainer&) = delete;  // its parts know each other's places
  Trainer& operator=(const Trainer&) = delete;

  /// Called on every rank: after each step, after each epoch, and after each test. They see what all ranks agree on.
  struct Hooks {
    std::function<void(const StepReport&)> step;
    std::function<void(const EpochReport&)> epoch;
    std::function<void(const Evaluation&)> evaluation;
  };
  void set_hooks(Hooks hooks) { hooks_ = std::move(hooks); }

  /// Before fit: train there, not on what `options.device` says.
  void set_platform(Platform platform) { platform_ = std::move(platform); }

  /// Trains on `train` and returns the last test's result. Collective; once for a trainer. Ranks must be given equal
  /// data, which is not used any more when this has returned or thrown. Throws InputError, agreed, for options, files,
  /// shapes and data that cannot work or differ between ranks; ResourceError, agreed, after all else is done, where the
  /// last checkpoint could not be written.
  Evaluation fit(const Dataset& train, const Dataset& test);

  /// Asks to end the training in good order, on all ranks: after this epoch where its steps are done, as in the hooks
  /// of an epoch and of its test; otherwise after the next step that begins. Any rank may, from any thread; before fit:
  /// its first step is the last. MirroredStrategy::request_stop in a hook is the same.
  void stop() noexcept { asked_to_stop_ = true; }

  [[nodiscard]] const StepStatistics& statistics() const noexcept { return statistics_; }
  /// After fit: it ended before its time, in good order and saved, for another run to go on
  /// (ExitStatus::stopped_resumable).
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// After fit, or in hooks.
  [[nodiscard]] MirroredStrategy& strategy() noexcept { return *strategy_; }

 private:
  void check_options(const Dataset& train);
  void check_ranks_agree(const Dataset& test);
  void choose_platform();
  void build(const Dataset& train, const Dataset& test);
  void open_checkpoints();
  [[nodiscard]] bool leaves_at_once();
  void resume(const Dataset& train);
  void set_position(const CheckpointManifest& manifest, const BatchPlan& plan);
  void tell_exactness();
  void train_epoch(BatchLoader& loader, EpochReport& report);
  void save_if_due(BatchLoader& loader, const EpochReport& report);
  void save_last(BatchLoader& loader, const EpochReport& report);
  void make_savable(BatchLoader& loader, const EpochReport& report);
  [[nodiscard]] CheckpointManifest manifest(const EpochReport& report) const;
  [[nodiscard]] bool asked_to_stop() const noexcept;
  [[nodiscard]] StepFlags flags() const;
  void end_saving();
  void require_saved() const;
  [[nodiscard]] std::uint64_t samples() const;  ///< of all steps, also of those before a checkpoint
  [[nodiscard]] double train_seconds() const;   ///< likewise
  void begin_step(BatchLoader& loader);
  void end_step(BatchLoader& loader, EpochReport& report);
  StepReport finish_step(const BatchPlan& plan, EpochReport& report);
  [[nodiscard]] bool may_begin(const BatchPlan& plan) const;
  [[nodiscard]] bool settles_after(std::uint64_t step) const;
  /// Where the training is, for going back to it.
  struct Position {
    std::uint64_t step = 0, epoch = 1, step_in_epoch = 0, updates = 0;
  };
  [[nodiscard]] Position position(const EpochReport& report) const;
  void audit(BatchLoader& loader, const EpochReport& report);
  void repeat_since(const Position& from, BatchLoader& loader, const EpochReport& report);
  void spoil(const Batch& batch);
  void guard(const Batch& batch);
  void roll_back(const std::string& why);
  void test_epoch(EpochReport& report);
  [[nodiscard]] EpochReport end_epoch(BatchLoader& loader, const EpochReport& report);
  void stop_between_epochs(BatchLoader& loader, const EpochReport& next);
  void give_back() noexcept;
  void tell_slow_ranks(const EpochReport& report);
  void write_predictions(const Dataset& test);
  void write_files(const EpochReport& last);
  [[nodiscard]] Summary summary(const EpochReport& last) const;  ///< collective
  [[nodiscard]] LoaderOptions loading(const Dataset& data, bool in_steps) const;
  [[nodiscard]] BatchPlan train_plan(const Dataset& train) const;
  [[nodiscard]] BatchPlan test_plan(const Dataset& test) const;
  [[nodiscard]] Schedule schedule(const BatchPlan& plan) const;
  [[nodiscard]] std::map<std::string, std::string> environment(const Primitives& primitives) const;
  [[nodiscard]] std::string first_line(const Dataset& train) const;

  World& world_;
  Layer& model_;
  Loss& loss_;
  TrainingOptions options_;
  FanOut sink_;
  StepStatistics statistics_;
  Hooks hooks_;
  std::unique_ptr<MirroredStrategy> strategy_;
  std::unique_ptr<BatchLoader> test_loader_;

  Platform platform_;  ///< without a device until fit, where none was brought
  int threads_ = 1;
  bool prefetch_ = false;
  std::uint64_t total_steps_ = 0, epochs_ = 0, step_ = 0;
  /// A step that was begun and is not finished.
  struct Begun {
    const Batch* batch;
    double start, data;  ///< when; seconds that its batches took
  };
  std::vector<Begun> in_flight_;  ///< the oldest first
  std::size_t most_in_flight_ = 1;
  bool settles_ = false;             ///< what is in flight is finished before another step begins
  double last_end_ = 0;              ///< of a step
  std::uint64_t step_in_epoch_ = 0;  ///< steps done of the epoch after `history_`
  double epoch_weight_ = 0;          ///< of the samples of these steps
  std::atomic<bool> asked_to_stop_ = false;
  bool stopped_ = false, left_ = false;
  bool unsaved_ = false;  ///< the last save failed
  double startup_seconds_ = 0, slowest_test_ = 0;
  StepResult last_step_;
  std::vector<EpochReport> history_;

  std::map<std::string, std::string> environment_, options_that_matter_;
  std::optional<Resumption> resumption_;
  std::optional<LeaveRequest> leave_;
  Faults faults_;
  SpoiledLoss spoiled_loss_{loss_, faults_};
  std::unique_ptr<ReplicaAudit> audit_;  ///< null: replicas are compared at the end alone
  Position audited_;                     ///< of the copy that it keeps
  struct {
    std::uint64_t audits = 0, divergences = 0, nonfinite_steps = 0, overflow_steps = 0, rollbacks = 0;
    std::uint64_t nonfinite_in_a_row = 0;
    double audit_seconds = 0;
  } guarded_;
  std::unique_ptr<Checkpointer> checkpointer_;  ///< last: its thread goes before what it reads
};

}  // namespace ronda
