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
#include <ronda/layers/summed_metric.hpp>
#include <ronda/runtime/io/fan_out.hpp>
#include <ronda/runtime/io/step_statistics.hpp>
#include <ronda/runtime/strategy/platform.hpp>
#include <ronda/runtime/strategy/strategy.hpp>
#include <ronda/runtime/trainer/hook.hpp>
#include <ronda/runtime/trainer/resumption.hpp>
#include <ronda/runtime/trainer/training_progress.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

class Saving;

/// Trains a model for some epochs, tests it after each, saves and resumes it, and writes what was asked for: the loop
/// that a user would otherwise write around a Strategy.
///
///     Trainer trainer(world, model, loss, {.epochs = 5, .learning_rate = 0.1});
///     Evaluation result = trainer.fit(train, test);
class Trainer {
 public:
  /// @param sink  is told of everything on rank 0; null: silence. Model, loss and sink outlive the trainer. Not
  /// collective.
  Trainer(World& world, const Layer& model, const Loss& loss, TrainingOptions options, EventSink* sink = nullptr);
  Trainer(const Trainer&) = delete;  // its parts know each other's places
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Before fit, on all ranks alike: adds a hook, behind those that were added before. A hook that is given by
  /// reference outlives the trainer.
  void add(Hook& hook) { hooks_.push_back(&hook); }
  void add(std::unique_ptr<Hook> hook);
  void add(Callbacks callbacks);
  /// Likewise a metric that each test measures beside the loss, `trainer.add(TopKAccuracy(5))`: its numbers are in the
  /// table, in the files, in EpochReport and in what fit returns. The next fit throws InputError for metrics that
  /// differ between ranks, do not take the model's outputs, or have names that are taken.
  void add(std::shared_ptr<const SummedMetric> metric) { metrics_.push_back(std::move(metric)); }
  template <std::derived_from<SummedMetric> Kind>
  void add(Kind metric) {
    add(std::make_shared<const Kind>(std::move(metric)));
  }

  /// Before fit: train there, not on what `options.device` says.
  void set_platform(Platform platform) { platform_ = std::move(platform); }

  /// Trains on `train`, tests with `test` after each epoch, and returns the last test's result; with `keep_best` that
  /// of the best epoch, whose model remains. Collective. Ranks must be given equal data, which is not used any more
  /// when this has returned or thrown.
  ///
  /// A further call continues the training for `options.epochs` (or `steps`) more, from the parameters and optimizer
  /// states that the last one left. Epochs and steps are counted on, and the schedule of the learning rate begins anew.
  /// With a constant rate two fits of two epochs leave the bits of one fit of four. Not after a training that was
  /// preempted (`left`), and not with `options.checkpoint_dir`.
  ///
  /// Throws
  /// - InputError, agreed, for options, files, shapes and data that cannot work or differ between ranks;
  /// - InputError, on all ranks, for an epoch or a test in which no sample has a weight;
  /// - InputError for samples that cannot work, such as a label beyond the classes, only on the rank that has them:
  ///   `launch` then ends the job (without it the other ranks wait for `communication_timeout`);
  /// - ResourceError, agreed, after all other work, that names each result and last checkpoint that could not be
  ///   written.
  Evaluation fit(const Dataset& train, const Dataset& test);
  /// The same without tests; the result is 0.
  Evaluation fit(const Dataset& train);

  /// Asks to end the training in good order, on all ranks: after this epoch where its steps are done, as in hooks of an
  /// epoch and of its test; otherwise after the next step that begins. Any rank may, from any thread; before fit: its
  /// first step is the last. Strategy::request_stop in a hook is the same.
  void stop() noexcept { asked_to_stop_ = true; }

  [[nodiscard]] const StepStatistics& statistics() const noexcept { return statistics_; }  ///< of all fits
  /// After fit: it ended before its time, in good order and saved, for another run to go on
  /// (ExitStatus::stopped_resumable).
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// After fit, or in hooks.
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
  std::vector<std::unique_ptr<EventSink>> files_;  ///< rank 0's, that training is told of
  StepStatistics statistics_;
  Platform platform_;  ///< without a device until fit, where none was brought
  std::vector<Hook*> hooks_;
  std::vector<std::unique_ptr<Hook>> owned_hooks_;
  std::vector<std::shared_ptr<const SummedMetric>> metrics_;
  std::unique_ptr<Loss> spoiled_loss_;  ///< null: no fault of it is injected
  std::unique_ptr<Strategy> strategy_;
  TrainingProgress progress_;
  std::atomic<bool> asked_to_stop_ = false;
  bool left_ = false;
};

}  // namespace ronda
