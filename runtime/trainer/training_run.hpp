#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/loader.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/io/step_statistics.hpp>
#include <ronda/runtime/io/summary.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>
#include <ronda/runtime/trainer/hook.hpp>
#include <ronda/runtime/trainer/training_progress.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

/// A fit in progress: the loop over epochs and steps, and the interface for hooks. Made by Trainer and passed to hooks.
/// The same on all ranks, except for times.
class TrainingRun {
 public:
  /// Arguments of a run; all must outlive it.
  struct Parts {
    World& world;
    const TrainingSetup& setup;
    Strategy& strategy;
    EventSink& sink;
    const StepStatistics& statistics;
    const Dataset& train;
    const Dataset& validation;  ///< empty: epochs are tested with `test`
    const Dataset& test;        ///< empty: there is no test
    Metric metric;              ///< of the loss
    const Metrics& metrics;     ///< further metrics of each test
    std::span<Hook* const> hooks;
    std::atomic<bool>& asked_to_stop;
    TrainingProgress& progress;
  };

  explicit TrainingRun(const Parts& parts);
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;
  ~TrainingRun();

  /// Trains to the end. Collective.
  void train();

  // ---- for hooks
  // -----------------------------------------------------------------------------------------------------

  [[nodiscard]] World& world() noexcept { return parts_.world; }
  [[nodiscard]] const TrainingSetup& setup() const noexcept { return parts_.setup; }
  [[nodiscard]] const TrainingOptions& options() const noexcept { return parts_.setup.options; }
  [[nodiscard]] Strategy& strategy() noexcept { return parts_.strategy; }
  [[nodiscard]] EventSink& sink() noexcept { return parts_.sink; }
  [[nodiscard]] const StepStatistics& statistics() const noexcept { return parts_.statistics; }
  [[nodiscard]] const TrainingProgress& progress() const noexcept { return parts_.progress; }
  [[nodiscard]] const Metric& metric() const noexcept { return parts_.metric; }
  /// True if epochs are tested with validation data; then the test data is used only for the final model.
  [[nodiscard]] bool validates() const noexcept { return validation_loader_ != nullptr; }
  [[nodiscard]] std::string tested_with() const { return validates() ? "validation" : "test"; }
  [[nodiscard]] static double tested_loss(const EpochReport& report) noexcept {
    return report.validated ? report.validation_loss : report.test_loss;
  }
  /// The values that the hook of this name stored in the checkpoint that the training resumes from; empty: none.
  [[nodiscard]] std::span<const double> kept_of(const std::string& name) const;
  [[nodiscard]] const Dataset& test_data() const noexcept { return parts_.test; }

  [[nodiscard]] std::uint64_t step() const noexcept { return progress().step; }  ///< steps done, over all epochs
  [[nodiscard]] std::uint64_t samples() const noexcept;  ///< of all steps, including those before a checkpoint
  [[nodiscard]] double train_seconds() const noexcept;   ///< likewise
  [[nodiscard]] double slowest_test() const noexcept { return slowest_test_; }  ///< seconds, on this rank
  /// The result of the last finished step.
  [[nodiscard]] const StepResult& last_step() const noexcept { return last_step_; }
  /// The last micro-batch of that step; only in before_batch and after_step.
  [[nodiscard]] const Batch& last_batch() const noexcept { return *last_batch_; }
  /// Describes a sample of that step, on this rank, with a non-finite input; empty if all are finite. Reads the samples
  /// again. Not collective.
  [[nodiscard]] std::string nonfinite_sample() const;
  /// True if no step is in flight.
  [[nodiscard]] bool settled() const noexcept { return in_flight_.empty(); }
  /// True if no further step will begin in this run.
  [[nodiscard]] bool ending() const noexcept { return stopped_ || step() == setup().total_steps; }
  /// True if the training ends early, for another run to resume.
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// True if the step in flight, or the next one, is this rank's first.
  [[nodiscard]] bool at_first_step() const noexcept { return statistics().steps() == 0 && settled(); }
  [[nodiscard]] TrainingPosition position() const noexcept;

  /// Requests a clean end, as Trainer::stop does. Any rank may call it.
  void stop() noexcept { parts_.asked_to_stop = true; }
  /// Prevents further steps. Call it on all ranks, with no step in flight, for example in on_start or after_epoch.
  void end() noexcept { stopped_ = true; }
  /// Multiplies the schedule's rates by `factor` from the next step on. Call it on all ranks, with no step in flight.
  void set_rate_factor(double factor);
  /// From the next step of this fit on, this rank takes other micro-batches of the global batch. Call it on all ranks
  /// with matching deals, with no step in flight. Other hooks are notified as by note_states_were_set: steps before and
  /// after round differently. Throws as Strategy::set_micro_batches.
  void deal(const Deal& deal);
  /// Notifies the other hooks that parameters or states were set, not by a step.
  void note_states_were_set() noexcept { ++states_set_; }
  [[nodiscard]] std::uint64_t states_were_set() const noexcept { return states_set_; }
  /// Prepares a save: calls before_save of all hooks, and makes states whole on every rank. Collective.
  void prepare_save(CheckpointManifest& manifest);
  /// Repeats the steps since `from`, to which the states of all ranks have been reset, without reporting them.
  /// Collective.
  void repeat_since(const TrainingPosition& from);
  /// Evaluates one epoch of the test data and calls `see` for each batch. Collective. Throws LogicError if there is no
  /// test data.
  Evaluation evaluate(const SeeOutputs& see);
  /// Plan of the batches that `evaluate` passes to `see`: this rank's samples, by batch number.
  [[nodiscard]] const BatchPlan& test_plan() const { return test_loader_->plan(); }
  /// Adds the counts of all hooks. Not collective.
  void summarize(Summary& summary) const;
  /// If validation data is used: tests the current model, and counts the result for the last epoch. Collective.
  void test_in_the_end();
  /// Sets the result of fit; the default is the last epoch's test.
  void set_result(const Evaluation& result) noexcept { result_ = result; }
  [[nodiscard]] Evaluation result() const;

 private:
  /// A step that has begun and is not finished.
  struct Begun {
    const Batch* batch;
    double start, data;                ///< its start; seconds that reading its batches took
    std::optional<std::size_t> place;  ///< step of the epoch whose samples it computes; nullopt: no samples
  };

  void train_epoch();
  [[nodiscard]] bool may_begin() const;
  [[nodiscard]] bool needs_equal_replicas() const;
  void begin_step();
  [[nodiscard]] const Batch& read_next();
  void seek(std::uint64_t epoch, std::uint64_t batch);
  void end_step();
  StepReport finish_step();
  void test_epoch();
  void warn_of_loss(const Evaluation& evaluation, const std::string& data, std::uint64_t epoch);
  void end_epoch();
  void agree_to_stop();
  [[nodiscard]] std::unique_ptr<BatchLoader> test_loader(const Dataset& data) const;
  Evaluation test(BatchLoader& loader);
  Evaluation evaluate(BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics);
  void compute_step(Begun& step);
  [[nodiscard]] SampleOrder train_order() const;
  [[nodiscard]] LoaderOptions loading(const Dataset& data, bool in_steps) const;

  Parts parts_;
  BatchLoader loader_;
  std::unique_ptr<BatchLoader> validation_loader_, test_loader_;  ///< null: no such data
  std::vector<Begun> in_flight_;                                  ///< the oldest first
  StepResult last_step_;
  const Batch* last_batch_ = nullptr;
  std::optional<std::size_t> last_place_;  ///< Begun::place of the last finished step
  std::uint64_t last_epoch_ = 1;           ///< epoch of the last finished step
  const Batch* newest_batch_ = nullptr;    ///< the last batch from the loader in this run
  double last_end_ = 0;                    ///< end of the last step
  double slowest_test_ = 0;
  std::uint64_t states_set_ = 0;
  Deal deal_;
  EpochBatches order_;  ///< batches taken up to the last settled step; ranks choose the next ones by it
  bool stopped_ = false, left_ = false;
  bool tells_ = false;  ///< a step of this epoch had samples that count, or was not finite
  std::optional<Evaluation> result_;
};

}  // namespace ronda
