#pragma once
#include <atomic>
#include <concepts>
#include <memory>
#include <utility>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/layers/metrics.hpp>
#include <ronda/runtime/io/step_statistics.hpp>
#include <ronda/runtime/strategy/replica/platform.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>
#include <ronda/runtime/trainer/hook.hpp>
#include <ronda/runtime/trainer/training_progress.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

class Saving;
struct Resumption;

/// Trains a model for some epochs, tests it after each, saves and resumes it, and writes the requested files: the loop
/// that a user would otherwise write around a Strategy.
///
///     Trainer trainer(world, model, loss, {.epochs = 5, .learning_rate = 0.1});
///     Evaluation result = trainer.fit(train, test);
class Trainer {
 public:
  /// @param sink  receives all events on rank 0; null: no output. Model, loss and sink must outlive the trainer. Not
  ///              collective.
  Trainer(World& world, const Layer& model, const Loss& loss, TrainingOptions options, EventSink* sink = nullptr);
  Trainer(const Trainer&) = delete;  // its parts point to each other
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Adds a hook after those added earlier. Call it before fit, on all ranks in the same order. A hook added by
  /// reference must outlive the trainer.
  void add(Hook& hook) { hooks_.push_back(&hook); }
  void add(std::unique_ptr<Hook> hook);
  void add(Callbacks callbacks);
  /// Adds a metric that each test measures along with the loss, `trainer.add(TopKAccuracy(5))`; its values are in the
  /// table, the files, EpochReport and the result of fit. Call it before fit, on all ranks in the same order. The next
  /// fit throws InputError for metrics that differ between ranks, do not accept the model's outputs, or have duplicate
  /// names.
  void add(std::shared_ptr<const SummedMetric> metric) { metrics_.push_back(std::move(metric)); }
  template <std::derived_from<SummedMetric> Kind>
  void add(Kind metric) {
    add(std::make_shared<const Kind>(std::move(metric)));
  }

  /// Sets the platform to train on, instead of the one from `options.device`. Call it before fit.
  void set_platform(Platform platform) { platform_ = std::move(platform); }

  /// Trains on `train`, tests with `test` after each epoch, and returns the last test's result. With `keep_best` the
  /// model of the best epoch is kept, and its result returned. Collective. All ranks must pass equal data, which is not
  /// used after fit has returned or thrown.
  ///
  /// A further call continues the training for `options.epochs` (or `steps`) more, from the parameters and optimizer
  /// states of the previous one. Epochs and steps are counted from the first call; the schedule of the learning rate
  /// starts again. With a constant rate, two fits of two epochs give the same bits as one fit of four. Not after a
  /// training that was preempted (`left`), and not with `options.checkpoint_dir`.
  ///
  /// Throws
  /// - InputError, agreed, for options, files, shapes and data that are invalid or differ between ranks;
  /// - InputError, on all ranks, for an epoch or a test in which no sample has a weight;
  /// - InputError for invalid samples, such as a label beyond the classes, only on the rank that has them: `launch`
  ///   then ends the job (without it the other ranks wait for `communication_timeout`);
  /// - ResourceError, agreed, after all other work, that names each result and last checkpoint that could not be
  ///   written.
  Evaluation fit(const Dataset& train, const Dataset& test);
  /// The same without tests; the result is 0.
  Evaluation fit(const Dataset& train);

  /// Requests a clean end of the training on all ranks: at the end of this epoch if its steps are done, as in hooks of
  /// an epoch and of its test; otherwise after the next step that begins. Any rank may call it, from any thread; if
  /// called before fit, its first step is the last. Strategy::request_stop in a hook has the same effect.
  void stop() noexcept { asked_to_stop_ = true; }

  [[nodiscard]] const StepStatistics& statistics() const noexcept { return statistics_; }  ///< of all fits
  /// After fit: true if it ended early, cleanly and saved, for another run to resume (ExitStatus::stopped_resumable).
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// Valid after fit, and in hooks.
  [[nodiscard]] Strategy& strategy() noexcept { return *strategy_; }

 private:
  struct FitData {
    const Dataset &train, &validation, &test;
  };

  Evaluation fit_on(const FitData& data);
  [[nodiscard]] TrainingSetup prepare(const FitData& data);
  void open_files(const TrainingOptions& options);
  void choose_platform(TrainingSetup& setup);
  void build(TrainingSetup& setup, const std::optional<Resumption>& resumption, const Dataset& train,
             const std::vector<const Dataset*>& device_data);
  void build_on(TrainingSetup& setup, const Dataset& train, const std::vector<const Dataset*>& device_data);
  void set_parameters(const TrainingSetup& setup, const std::optional<Resumption>& resumption, const Dataset& train);
  [[nodiscard]] Metrics checked_metrics() const;
  Evaluation run(const TrainingSetup& setup, Saving* saving, const FitData& data);

  World& world_;
  const Layer& model_;
  const Loss& loss_;
  TrainingOptions options_;
  FanOut sink_;
  std::vector<std::unique_ptr<EventSink>> files_;  ///< event sinks of rank 0 that write files
  StepStatistics statistics_;
  Platform platform_;  ///< no device until fit, unless set_platform was called
  std::vector<Hook*> hooks_;
  std::vector<std::unique_ptr<Hook>> owned_hooks_;
  std::vector<std::shared_ptr<const SummedMetric>> metrics_;
  std::unique_ptr<Loss> spoiled_loss_;  ///< null: no fault of the loss is injected
  std::unique_ptr<Strategy> strategy_;
  TrainingProgress progress_;
  std::atomic<bool> asked_to_stop_ = false;
  bool left_ = false;
};

}  // namespace ronda
