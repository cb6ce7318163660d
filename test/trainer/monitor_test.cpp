// What watches the loss of each epoch's test: the best model, early stopping, a smaller rate; and validation data.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/best_model.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/fake_training.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/running_mean.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace monitor_test {
namespace {

enum class Place { processor, device };
constexpr Place places[] = {Place::processor, Place::device};
constexpr std::uint64_t epochs = 8;

/// Learns so fast that its tests get better and worse.
TrainingOptions restless() {
  TrainingOptions options = small({});
  options.epochs = epochs;
  options.learning_rate = 0.9;
  options.optimizer.name = "momentum";
  return options;
}

struct Training {
  Training(Place place, TrainingOptions options) : trainer(world(), model, loss, std::move(options)) {
    if (place == Place::device) {
      devices.emplace(AllreduceAlgorithm::staged, world().communicator());
      trainer.set_platform(
          {ComputeDevice::on(devices->device), make_fake_primitives(DType::float32), make_fake_updater, fake_gather});
      model.add(Flatten());
    } else {
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
      model.add(Flatten());
      model.add(RunningMean());
    }
    model.add(Dense(12));
    model.add(ReLU());
    model.add(Dense(4));
    trainer.add({.step = [this](const StepReport& report) { rates.push_back(report.learning_rate); },
                 .epoch = [this](const EpochReport& report) { reports.push_back(report); }});
  }
  Evaluation fit() { return trainer.fit(data, test); }
  std::string hash() { return trainer.strategy().parameter_hash(); }
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> losses;
    for (const auto& report : reports) losses.push_back(TrainingRun::tested_loss(report));
    return losses;
  }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4), test = toy_images(40, {9, 7, 1}, 4);
  std::optional<Devices> devices;  // before what uses them
  Sequential model;
  SoftmaxCrossEntropy loss;
  std::vector<EpochReport> reports;
  std::vector<double> rates;
  Trainer trainer;
};

std::unique_ptr<Training> trained(Place place, TrainingOptions options) {
  auto training = std::make_unique<Training>(place, std::move(options));
  training->fit();
  return training;
}

/// From 0.
std::size_t best_of(const std::vector<double>& losses) {
  return static_cast<std::size_t>(std::ranges::min_element(losses) - losses.begin());
}

/// The rates' factor in each epoch, by the rule as PyTorch states it.
std::vector<double> factors(const std::vector<double>& losses, std::uint64_t patience, double factor) {
  std::vector<double> all{1};
  double best = std::numeric_limits<double>::infinity();
  std::uint64_t bad = 0;
  for (const double loss : losses) {
    bad = loss < best ? 0 : bad + 1;
    best = std::min(best, loss);
    all.push_back(bad == patience ? all.back() * factor : all.back());
    if (bad == patience) bad = 0;
  }
  return all;
}

}  // namespace

TEST_CASE("the best epoch's model remains, to the bit, and its test is the result") {
  for (const Place place : places) {
    const auto all = trained(place, restless());
    const std::size_t best = best_of(all->losses());
    REQUIRE(best + 1 < epochs);  // otherwise this tests nothing
    TrainingOptions shorter = restless();
    shorter.epochs = best + 1;
    const auto expected = trained(place, shorter);
    TrainingOptions options = restless();
    options.keep_best = true;
    Training training(place, options);
    const Evaluation result = training.fit();
    CHECK(training.losses() == all->losses());
    CHECK(training.hash() == expected->hash());
    CHECK(result.loss == all->reports[best].test_loss);
    CHECK(result.metric == all->reports[best].test_metric);
  }
}

TEST_CASE("a training ends when its tests have not improved for so many epochs") {
  for (const Place place : places) {
    const auto all = trained(place, restless());
    for (const std::uint64_t patience : {1, 2, 3}) {
      const auto losses = all->losses();
      std::size_t expected = losses.size();
      std::uint64_t waited = 0;
      double best = std::numeric_limits<double>::infinity();
      for (std::size_t epoch = 0; epoch < losses.size() && expected == losses.size(); ++epoch) {
        waited = losses[epoch] < best ? 0 : waited + 1;
        best = std::min(best, losses[epoch]);
        if (waited == patience) expected = epoch + 1;
      }
      TrainingOptions options = restless();
      options.early_stopping = patience;
      const auto training = trained(place, options);
      CHECK(training->reports.size() == expected);
      if (patience == 1) REQUIRE(expected < epochs);
    }
  }
}

TEST_CASE("a test loss that is not finite is a warning, and no improvement") {
  struct Heard final : EventSink {
    void on_warning(std::string_view text) override { warnings += std::string(text) + "\n"; }
    std::string warnings;
  } heard;
  const Sequential model{Flatten(), Dense(1)};
  const MeanSquaredError loss;
  const MemoryDataset data({1, 2, 3, 4}, {1}, std::vector<float>{1, 2, 3, 4}, {1}),
      far({std::numeric_limits<float>::infinity()}, {1}, std::vector<float>{1}, {1});
  TrainingOptions options = small({});
  options.epochs = 5;
  options.learning_rate = 0.01;
  options.early_stopping = 2;
  Trainer trainer(world(), model, loss, options, &heard);
  std::size_t epochs = 0;
  trainer.add({.epoch = [&](const EpochReport&) { ++epochs; }});
  CHECK_FALSE(std::isfinite(trainer.fit(data, far).loss));
  CHECK(epochs == 2);
  if (world().rank() == 0)
    require_mentions(heard.warnings, {"the test loss of epoch 1 is not finite", "epoch 2", "no improvement"});
}

TEST_CASE("what is better by too little does not count") {
  const auto all = trained(Place::processor, restless());
  const auto losses = all->losses();
  const double least = 1.01 * (losses.front() - *std::ranges::min_element(losses));
  REQUIRE(least > 0);
  std::size_t best = 0;
  for (std::size_t epoch = 1; epoch < losses.size(); ++epoch)
    if (losses[epoch] < losses[best] - least) best = epoch;
  REQUIRE(best != best_of(losses));  // otherwise this tests nothing
  TrainingOptions options = restless();
  options.keep_best = true;
  options.least_improvement = least;
  Training training(Place::processor, options);
  CHECK(training.fit().loss == losses[best]);
  for (const double odd : {-1.0, std::nan("")}) {
    options.least_improvement = odd;
    require_mentions(message_of<InputError>([&] { trained(Place::processor, options); }), {".least_improvement"});
  }
}

TEST_CASE("each checkpoint has the best model that it names, also if a better one comes while it is written") {
  const SharedFolder folder;
  TrainingOptions options = small({});
  options.epochs = 40;
  options.learning_rate = 0.001;  // each epoch is better than the one before
  options.keep_best = true;
  options.checkpoint_dir = folder.path;
  options.checkpoint_every = {.steps = 1};
  options.keep = 1000;
  trained(Place::processor, options);
  Communicator all = world().communicator();
  all.barrier();
  for (const auto& place : list_checkpoints(folder.path)) {
    const auto hooks = read_manifest(manifest_of(place.path)).hooks;
    const auto best = hooks.find("best_epoch");
    if (best == hooks.end()) continue;  // of the first epoch
    CAPTURE(place.path, best->second[1]);
    CHECK(std::filesystem::exists(best_model_path(folder.path, static_cast<std::uint64_t>(best->second[1]))));
  }
  all.barrier();
}

TEST_CASE("the rate follows tests that do not improve") {
  for (const Place place : places) {
    TrainingOptions options = restless();
    options.reduce_rate_after = 1;
    options.reduce_rate_factor = 0.25;
    const auto training = trained(place, options);
    const auto expected = factors(training->losses(), 1, 0.25);
    REQUIRE(expected[epochs - 1] < 1);
    for (std::size_t step = 0; step < training->rates.size(); ++step)
      CHECK(training->rates[step] == *options.learning_rate * expected[step / steps_per_epoch]);
  }
}

TEST_CASE("all of it goes on from a checkpoint as if nothing had happened") {
  for (const Place place : places) {
    TrainingOptions options = restless();
    options.keep_best = true;
    options.reduce_rate_after = 2;
    options.early_stopping = 5;
    const auto whole = trained(place, options);
    const std::string hash = whole->hash();
    for (const std::uint64_t step : {4, 6, 14, 22, 28}) {
      if (step >= whole->rates.size()) continue;
      const SharedFolder folder;
      TrainingOptions first = options;
      first.checkpoint_dir = folder.path;
      TrainingOptions second = first;
      second.resume = second.exact = true;
      const bool told = world().rank() + 1 == world().size();
      first.steps_in_flight = 1;
      first.leave = [told, asked = std::uint64_t{0}, step]() mutable { return ++asked == step + 1 && told; };
      const auto begun = trained(place, first);
      REQUIRE(begun->trainer.left());
      const auto rest = trained(place, second);
      INFO("ended after step " << step);
      CHECK(rest->hash() == hash);
      REQUIRE(begun->rates.size() + rest->rates.size() == whole->rates.size());
      CHECK(std::equal(rest->rates.begin(), rest->rates.end(), whole->rates.begin() + static_cast<long>(step)));
    }
  }
}

TEST_CASE("a training that ended early ends at once when it is resumed, unless it is to wait longer") {
  const SharedFolder folder;
  TrainingOptions options = restless();
  options.early_stopping = 1;
  options.keep_best = true;
  options.checkpoint_dir = folder.path;
  const auto ended = trained(Place::processor, options);
  REQUIRE(ended->reports.size() < epochs);
  options.resume = true;
  const auto again = trained(Place::processor, options);
  CHECK(again->rates.empty());
  CHECK(again->hash() == ended->hash());  // the best one's
  options.early_stopping = epochs;
  CHECK(trained(Place::processor, options)->reports.size() == epochs - ended->reports.size());
}

TEST_CASE("the best model's file may be lost: that is said, and later ones count alone") {
  const SharedFolder folder;
  TrainingOptions options = restless();
  options.keep_best = true;
  options.checkpoint_dir = folder.path;
  TrainingOptions first = options;
  first.epochs = 3;
  trained(Place::processor, first);
  Communicator all = world().communicator();
  all.barrier();
  if (world().rank() == 0)
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      if (entry.path().filename().string().starts_with("best-step-")) std::filesystem::remove(entry.path());
  all.barrier();
  options.resume = true;
  const auto rest = trained(Place::processor, options);
  // The checkpoint is that of the third epoch's last step, whose test is done once more.
  CHECK(rest->reports.size() == epochs - 2);
}

TEST_CASE("a best model that cannot be written is a warning, and the training goes on") {
  const SharedFolder folder;
  TrainingOptions options = restless();
  options.keep_best = true;
  options.checkpoint_dir = folder.path / "run";
  Training training(Place::processor, options);
  training.trainer.add({.step = [&](const StepReport& report) {
    if (report.step == 2 && world().rank() == 0) std::filesystem::rename(folder.path / "run", folder.path / "gone");
  }});
  CHECK_NOTHROW(training.fit());
  CHECK(training.reports.size() == epochs);
}

TEST_CASE("replicas are repaired across a change of the rate, to the bit") {
  if (world().size() == 1) return;  // replicas that differ take two
  for (const Place place : places) {
    TrainingOptions options = restless();
    options.reduce_rate_after = 1;
    options.audit_every = 3;
    options.on_divergence = OnDivergence::rollback;
    const auto whole = trained(place, options);
    for (const char* step : {"3", "4", "8", "13", "20"}) {
      options.faults = {parse_fault("flip@" + std::string(step) + ":1")};
      const auto repaired = trained(place, options);
      INFO("step " << step);
      CHECK(repaired->hash() == whole->hash());
      CHECK(repaired->rates == whole->rates);
    }
  }
}

TEST_CASE("validation data is a random part of the training data, and tests are for the end") {
  TrainingOptions options = restless();
  options.validation_split = 0.2;
  options.keep_best = true;
  for (const Place place : places) {
    Training training(place, options);
    int tests = 0;
    training.trainer.add({.evaluation = [&](const Evaluation&) { ++tests; }});
    const Evaluation result = training.fit();
    REQUIRE(training.reports.size() == epochs);
    CHECK(tests == epochs);
    for (const auto& report : training.reports) {
      CHECK(report.samples == 72);
      CHECK(report.validated);
      CHECK_FALSE(report.evaluated);
      CHECK(report.validation_loss > 0);
    }
    TrainingOptions shorter = options;
    shorter.keep_best = false;
    shorter.epochs = best_of(training.losses()) + 1;
    Training expected(place, shorter);
    CHECK(expected.fit().loss == result.loss);
    CHECK(training.hash() == expected.hash());
  }
  Training without(Place::processor, options);
  CHECK(without.trainer.fit(without.data).loss == 0);
}

TEST_CASE("what cannot be watched is refused, by the options' names") {
  TrainingOptions options = restless();
  options.early_stopping = 2;
  Training training(Place::processor, options);
  require_mentions(message_of<InputError>([&] { training.trainer.fit(training.data); }),
                   {"early_stopping", "validation_split"});
  for (const double share : {-0.1, 1.0, 1.5, std::nan("")}) {
    TrainingOptions bad = restless();
    bad.validation_split = share;
    require_mentions(message_of<InputError>([&] { trained(Place::processor, bad); }), {"validation_split"});
  }
  for (const double factor : {0.0, 1.0, -1.0, std::nan("")}) {
    TrainingOptions bad = restless();
    bad.reduce_rate_after = 1;
    bad.reduce_rate_factor = factor;
    require_mentions(message_of<InputError>([&] { trained(Place::processor, bad); }), {"reduce_rate_factor"});
  }
}

TEST_CASE("metrics are measured in each test, on the processor and on a device, and are the best epoch's in the end") {
  for (const Place place : places)
    for (const double split : {0.0, 0.25}) {
      TrainingOptions options = restless();
      options.keep_best = true;
      options.validation_split = split;
      Training training(place, options);
      training.trainer.add(TopKAccuracy(1));
      training.trainer.add(ConfusionMatrix());
      std::vector<double> told;
      training.trainer.add({.evaluation = [&](const Evaluation& e) { told.push_back(number_of(e.metrics, "top1")); }});
      const Evaluation result = training.fit();
      REQUIRE(training.reports.size() == epochs);
      for (std::size_t e = 0; e < epochs; ++e) {
        const EpochReport& report = training.reports[e];
        const auto& metrics = split > 0 ? report.validation_metrics : report.test_metrics;
        CHECK((split > 0 ? report.test_metrics : report.validation_metrics).empty());
        REQUIRE(metrics.size() == 2);
        CHECK(metrics[0].number() == (split > 0 ? report.validation_metric : report.test_metric));
        CHECK(metrics[0].number() == told[e]);
        double counted = 0;
        for (const double count : metrics[1].values) counted += count;
        CHECK(counted == (split > 0 ? 23 : 40));
      }
      CHECK(number_of(result.metrics, "top1") == result.metric);
      CHECK(result.metrics.size() == 2);
    }
}

TEST_CASE("metrics that a training cannot measure are refused before its first step") {
  const auto refused = [](auto... metrics) {
    Training training(Place::processor, restless());
    (training.trainer.add(metrics), ...);
    const std::string message = message_of<InputError>([&] { training.fit(); });
    CHECK(training.trainer.statistics().steps() == 0);
    return message;
  };
  require_mentions(refused(TopKAccuracy(2), TopKAccuracy(2)), {"top2"});
  if (world().size() == 1) return;
  require_mentions(refused(TopKAccuracy(1 + world().rank())), {"metrics"});
}

TEST_CASE("a metric whose values do not fit their shape is told of") {
  class Half final : public SummedMetric {
   public:
    [[nodiscard]] std::size_t sums(const Shape&) const override { return 1; }
    void add(const Tensor&, const Tensor&, std::span<const float>, std::span<double>) const override {}
    [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override {
      return {{.metric = {"halves", false}, .values = {sums[0]}, .shape = Shape{2}}};
    }
  };
  Training training(Place::processor, restless());
  training.trainer.add(Half());
  require_mentions(message_of<LogicError>([&] { training.fit(); }), {"halves", "(2)", "2 of .values, and 1"});
}

}  // namespace monitor_test
