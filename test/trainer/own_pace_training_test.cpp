// Trainings whose workers do not wait for each other: an epoch has each sample once, ages are bounded, and all that a
// trainer does between steps still works.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/trainer/epoch_batches.hpp>
#include <ronda/runtime/trainer/hook.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

#include "support/message.hpp"
#include "support/ranks.hpp"
#include "trainer/saved_training.hpp"
#include "trainer/small_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace own_pace_training_test {
namespace {

/// Rank 0 takes longer for each step that it computes.
class Slow final : public Hook {
 public:
  void before_batch(TrainingRun& run, const Batch&) override {
    if (run.world().rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void after_epoch(TrainingRun&, const EpochReport& report) override { epochs.push_back(report); }
  std::vector<EpochReport> epochs;
};

struct PacedTraining : SmallTraining {
  explicit PacedTraining(TrainingOptions options, std::unique_ptr<Slow> hook = std::make_unique<Slow>())
      : SmallTraining(std::move(options), Sequential(Flatten(), Dense(33), ReLU(), Dense(4))), slow(*hook) {
    trainer.add(std::move(hook));
  }
  [[nodiscard]] ServerTraffic traffic() { return trainer.strategy().exchange().report().traffic; }

  Slow& slow;  ///< the trainer's
};

constexpr auto paced = fitted_training<PacedTraining>;

TrainingOptions asynchronous_by(int servers) {
  TrainingOptions options = with_servers(servers, "momentum");
  options.strategy = ParameterServer{.servers = servers, .asynchronous = true};
  return options;
}

/// Asynchronous, and by the first of the workers.
std::vector<TrainingOptions> ways() {
  std::vector<TrainingOptions> all;
  for (const int servers : server_counts()) {
    all.push_back(asynchronous_by(servers));
    all.push_back(asynchronous_by(servers));
    all.back().strategy = ParameterServer{.servers = servers, .replicas_to_aggregate = 1};
  }
  return all;
}

constexpr std::size_t counted_samples = 80;

/// Counts the uses of each sample: each has an input of its own, and its weight grows by 1 / batch with each use.
struct CountedTraining {
  explicit CountedTraining(TrainingOptions options, std::size_t batch = 2)
      : trainer(world(), model, loss, given(std::move(options), batch)) {
    trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
    trainer.add(std::make_unique<Slow>());
  }
  static TrainingOptions given(TrainingOptions options, std::size_t batch) {
    options = small(std::move(options));
    options.epochs = 1;
    options.global_batch_size = batch;
    options.optimizer.name = "sgd";
    options.learning_rate = 1;
    options.initializer = Initializer::zeros;
    return options;
  }
  static MemoryDataset samples() {
    std::vector<float> inputs(counted_samples * counted_samples);
    for (std::size_t i = 0; i < counted_samples; ++i) inputs[i * counted_samples + i] = 1;
    return {std::move(inputs), {counted_samples}, std::vector<float>(counted_samples, 1e6F), {1}};
  }
  void fit() { trainer.fit(data, data); }
  /// By sample.
  std::vector<float> weights() {
    const Tensor& values = trainer.strategy().parameters()[0].value;
    return {values.pointer<float>(), values.pointer<float>() + counted_samples};
  }
  [[nodiscard]] bool used_each_once() { return weights() == std::vector<float>(counted_samples, 0.5F); }

  MemoryDataset data = samples();
  Sequential model{Dense(1)};
  L1Loss loss;
  Trainer trainer;
};
constexpr auto counted_training = fitted_training<CountedTraining>;

/// A training like `options` that resumes from the last checkpoint in the folder, and saves nothing.
TrainingOptions going_on_from(const SharedFolder& folder, TrainingOptions options) {
  options.resume_from = list_checkpoints(folder.path).back().path;
  return options;
}

}  // namespace

TEST_CASE("an epoch's batches that no step has taken are numbered, the skipped ones first") {
  EpochBatches batches;
  for (const std::uint64_t batch : {0, 2, 6, 3}) batches.take(batch);
  CHECK(batches.taken() == 4);
  CHECK(batches.skipped() == std::vector<std::uint64_t>{1, 4, 5});
  std::vector<std::uint64_t> next;
  for (std::uint64_t number = 4; number < 9; ++number) next.push_back(batches.batch(number));
  CHECK(next == std::vector<std::uint64_t>{1, 4, 5, 7, 8});
  for (const std::uint64_t batch : {5, 1, 4}) batches.take(batch);
  CHECK(batches.skipped().empty());
  CHECK(batches.batch(7) == 7);
}

TEST_CASE(
    "asynchronous workers use each sample of an epoch once, with checkpoints, an end and a resumption in its midst") {
  for (const int servers : server_counts())
    for (const std::uint64_t every : {1, 2, 7}) {
      const SharedFolder folder;
      TrainingOptions options = saving_in(folder, asynchronous_by(servers));
      options.checkpoint_every.steps = every;
      run_until(17, options, counted_training);
      options.resume = true;
      CHECK(counted_training(options)->used_each_once());
    }
}

TEST_CASE("a mirrored training that goes on from an asynchronous one uses the samples that are left") {
  for (const int servers : server_counts()) {
    const SharedFolder folder;
    run_until(17, saving_in(folder, asynchronous_by(servers)), counted_training);
    CHECK(counted_training(going_on_from(folder, {}))->used_each_once());
  }
}

TEST_CASE("an epoch of asynchronous workers that goes on with another batch uses no sample twice") {
  for (const int servers : server_counts()) {
    const SharedFolder folder;
    run_until(17, saving_in(folder, asynchronous_by(servers)), counted_training);
    TrainingOptions options = going_on_from(folder, asynchronous_by(servers));
    options.allow_changes = {"global-batch-size"};
    CountedTraining training(options, 4);
    training.fit();
    const std::vector<float> weights = training.weights();
    const auto uses = [&](float weight) { return std::ranges::count(weights, weight); };
    CHECK(uses(0.5F) == 34);
    CHECK(uses(0.25F) + uses(0) == 46);
    CHECK(uses(0.25F) % 4 == 0);
  }
}

TEST_CASE("an epoch of asynchronous workers has each sample once") {
  for (const int servers : server_counts())
    for (const std::size_t accumulate : {1, 2}) {
      TrainingOptions options = asynchronous_by(servers);
      options.optimizer.name = "sgd";
      options.clip_value = 1e-20;  // parameters stay: an epoch's loss is that of all samples, each once
      options.accumulate = accumulate;
      const auto training = paced(options);
      REQUIRE(training->slow.epochs.size() == 3);
      for (const EpochReport& epoch : training->slow.epochs) {
        CHECK(std::abs(epoch.train_loss - training->result.loss) < 1e-6);
        CHECK(epoch.samples == 90);
      }
      const ServerTraffic traffic = training->traffic();
      CHECK(traffic.dropped == 0);
      CHECK(std::accumulate(traffic.staleness.begin(), traffic.staleness.end(), std::uint64_t{0}) == 12);
    }
}

TEST_CASE("more workers than steps of an epoch leave some without samples") {
  for (const std::uint64_t staleness : {0, 5})
    for (const int servers : server_counts()) {
      TrainingOptions options = asynchronous_by(servers);
      options.batch_size = 60;  // two steps
      options.strategy.as<ParameterServer>()->max_staleness = staleness;
      auto training = std::make_unique<PacedTraining>(options);
      // `small` sets the global batch: this one is given by the rank.
      TrainingOptions given = small(options);
      given.global_batch_size = 0;
      Trainer trainer(world(), training->model, training->loss, given);
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
      trainer.fit(training->data, training->data);
      CHECK(trainer.statistics().steps() == 6);
      CHECK_FALSE(trainer.strategy().parameter_hash().empty());
    }
}

TEST_CASE("a bound on staleness holds") {
  for (const std::uint64_t bound : {0, 1, 3})
    for (const int servers : server_counts()) {
      TrainingOptions options = asynchronous_by(servers);
      options.strategy.as<ParameterServer>()->max_staleness = bound;
      const auto training = std::make_unique<PacedTraining>(options);
      TrainingOptions given = small(options);
      given.global_batch_size = 3;  // thirty steps an epoch
      Trainer trainer(world(), training->model, training->loss, given);
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
      trainer.add(training->slow);
      trainer.fit(training->data, training->data);
      const auto ages = trainer.strategy().exchange().report().traffic.staleness;
      const auto workers = static_cast<std::uint64_t>(world().size() - servers);
      const std::uint64_t most = (workers - 1) * (2 * bound + 1);
      for (std::size_t age = 0; age < ages.size(); ++age) CHECK((ages[age] == 0 || age <= most));
      CHECK(std::accumulate(ages.begin(), ages.end(), std::uint64_t{0}) == 90);
    }
}

TEST_CASE("asynchronous workers in step are mirrored replicas of a batch as large as all of theirs") {
  // All compute from the same values, which then change by the sum of their mean gradients, in whichever order they
  // come.
  for (const int servers : server_counts()) {
    const auto workers = static_cast<std::size_t>(world().size() - servers);
    TrainingOptions options = small(asynchronous_by(servers));
    options.optimizer.name = "sgd";
    options.strategy.as<ParameterServer>()->max_staleness = 0;
    options.global_batch_size = 3;
    options.learning_rate = 0.01;
    const PacedTraining parts{TrainingOptions()};
    const auto loss_of = [&](const TrainingOptions& given) {
      Trainer trainer(world(), parts.model, parts.loss, given);
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
      return trainer.fit(parts.data, parts.data).loss;
    };
    const double loss = loss_of(options);
    options.strategy = "mirrored";
    options.global_batch_size = 3 * workers;
    options.learning_rate = *options.learning_rate * static_cast<double>(workers);
    CHECK(std::abs(loss - loss_of(options)) < 1e-5);
  }
}

TEST_CASE("a training at its own pace ends where it is told to, is saved, and is gone on with by it and by others") {
  for (const TrainingOptions& way : ways()) {
    const SharedFolder folder;
    TrainingOptions options = saving_in(folder, way);
    options.checkpoint_every.steps = 3;
    run_until(5, options, paced);
    CHECK_FALSE(list_checkpoints(folder.path).empty());
    options.resume = true;
    const auto training = paced(options);
    CHECK(training->trainer.statistics().steps() == 7);
    CHECK_FALSE(training->hash().empty());
    TrainingOptions mirrored = options;
    mirrored.checkpoint_dir.clear();
    mirrored.checkpoint_every = {};
    mirrored.resume = false;
    mirrored.resume_from = list_checkpoints(folder.path).back().path;
    mirrored.strategy = "mirrored";
    mirrored.epochs = 4;
    CHECK_FALSE(paced(mirrored)->hash().empty());
  }
}

TEST_CASE("saving by time, pruning, the best epoch, an average and skipped steps do not stand still") {
  for (const TrainingOptions& way : ways()) {
    const SharedFolder folder;
    TrainingOptions options = saving_in(folder, way);
    options.checkpoint_every.seconds = 0.01;
    options.validation_split = 0.2;
    options.ema_decay = 0.5;
    options.on_nonfinite = OnNonfinite::skip;
    options.faults = {parse_fault("nan@3:0")};
    options.reduce_rate_after = 1;
    options.keep_best = true;
    const auto training = paced(options);
    CHECK_FALSE(training->hash().empty());
    CHECK(std::isfinite(training->result.loss));
    TrainingOptions pruning = way;
    pruning.prune = 0.8;
    pruning.clip_norm = 1;
    check_pruned(*paced(pruning));
  }
}

TEST_CASE("at its own pace a training is gone on with by a second fit, beside another") {
  for (const TrainingOptions& way : ways()) {
    const auto first = paced(way), other = paced(way);
    const Evaluation result = first->trainer.fit(first->data, first->data);
    CHECK(std::isfinite(result.loss));
    CHECK(first->trainer.strategy().updates() == 24);  // 4 steps an epoch, 3 epochs a fit
    CHECK(other->trainer.strategy().updates() == 12);
    CHECK_FALSE(first->hash().empty());
    CHECK_FALSE(other->hash().empty());
  }
}

TEST_CASE("equal bits are not promised at one's own pace") {
  if (world().size() == 1) return;
  for (TrainingOptions options : ways()) {
    options.exact = true;
    require_mentions(message_of<InputError>([&] { paced(options); }), {".exact", ".asynchronous"});
  }
}

}  // namespace own_pace_training_test
