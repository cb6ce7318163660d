// What hooks are told and may do, and how a training goes on when fit is called again; on processors and on devices.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

#include "support/catch.hpp"
#include "support/devices.hpp"
#include "support/fake_training.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace hook_test {
namespace {

enum class Place { processor, device };
constexpr Place places[] = {Place::processor, Place::device};

/// A small training of four steps an epoch.
struct Training {
  Training(Place place, TrainingOptions options) : trainer(world(), model, loss, std::move(options)) {
    if (place == Place::device) {
      devices.emplace(AllreduceAlgorithm::staged, world().communicator());
      trainer.set_platform(
          {ComputeDevice::on(devices->device), make_fake_primitives(DType::float32), make_fake_updater, fake_gather});
    } else {
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
    }
  }
  std::string hash() { return trainer.strategy().parameter_hash(); }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  std::optional<Devices> devices;  // before what uses them
  Sequential model{Flatten(), Dense(33), ReLU(), Dense(4)};
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

TrainingOptions options_for(std::uint64_t epochs, const std::string& optimizer = "adam") {
  TrainingOptions options = small({});
  options.epochs = epochs;
  options.optimizer.name = optimizer;
  return options;
}

/// Writes down what it is told.
class Diary final : public Hook {
 public:
  explicit Diary(std::vector<std::string>& lines) : lines_(lines) {}
  void on_start(TrainingRun& run) override { add("start after " + std::to_string(run.step())); }
  void before_step(TrainingRun& run, StepFlags&) override {
    add("before " + std::to_string(run.step() + 1));
    CHECK(run.settled());
  }
  void before_batch(TrainingRun&, const Batch& batch) override {
    add("batch " + std::to_string(batch.input().desc().count() > 0));
  }
  [[nodiscard]] bool settles_after(std::uint64_t) const override { return true; }
  void after_step(TrainingRun& run, const StepReport& report) override {
    CHECK(run.settled());
    CHECK(run.strategy().updates() == report.step);
    CHECK(run.last_step().loss == report.loss);
    add("after " + std::to_string(report.step));
  }
  void after_test(TrainingRun&, const Evaluation&) override { add("test"); }
  void after_epoch(TrainingRun& run, const EpochReport& report) override {
    CHECK(run.progress().history.back().epoch == report.epoch);
    add("epoch " + std::to_string(report.epoch));
  }
  void on_end(TrainingRun& run) override {
    CHECK(run.ending());
    add("end");
  }

 private:
  void add(std::string line) { lines_.push_back(std::move(line)); }
  std::vector<std::string>& lines_;
};

}  // namespace

TEST_CASE("a hook is told of everything, in order, with nothing in flight where it says so") {
  for (const Place place : places) {
    std::vector<std::string> lines;
    TrainingOptions options = options_for(1);
    options.steps = 2;
    Training training(place, options);
    training.trainer.add(std::make_unique<Diary>(lines));
    training.trainer.fit(training.data, training.data);
    CHECK(lines == std::vector<std::string>{"start after 0", "before 1", "batch 1", "after 1", "before 2", "batch 1",
                                            "after 2", "test", "epoch 1", "end"});
  }
}

TEST_CASE("functions that look on do not hold up a device, and settling ones do") {
  for (const bool settles : {false, true}) {
    Training training(Place::device, options_for(2));
    std::size_t most = 0;
    std::uint64_t seen = 0;
    training.trainer.add({.step =
                              [&](const StepReport& report) {
                                CHECK(report.step == ++seen);
                                most = std::max(most, training.trainer.strategy().steps_in_flight());
                              },
                          .settles = settles});
    training.trainer.fit(training.data, training.data);
    CHECK(seen == 2 * steps_per_epoch);
    CHECK(most == (settles ? 0 : 3));  // of the four that may be in flight one is looked at
  }
}

TEST_CASE("a hook may ask for a checkpoint, on one rank, beside those that are due") {
  class Saver final : public Hook {
   public:
    void before_step(TrainingRun& run, StepFlags& flags) override {
      if (run.step() + 1 == 3 && run.world().rank() + 1 == run.world().size()) flags.save = 1;
    }
  };
  const SharedFolder folder;
  TrainingOptions options = options_for(2);
  options.checkpoint_dir = folder.path;
  Training training(Place::processor, options);
  training.trainer.add(std::make_unique<Saver>());
  training.trainer.fit(training.data);
  if (world().rank() == 0) CHECK(std::filesystem::exists(folder.path / "step-3/manifest.json"));
}

TEST_CASE("what a hook throws ends the training, on the rank that threw") {
  for (const Place place : places) {
    Training training(place, options_for(2));
    training.trainer.add({.step = [](const StepReport& report) {
      if (report.step == 3) throw std::runtime_error("enough");
    }});
    CHECK_THROWS_WITH(training.trainer.fit(training.data, training.data), "enough");
    CHECK(training.trainer.strategy().steps_in_flight() == 0);
  }
}

TEST_CASE("a training goes on when fit is called again: two fits of two epochs are one of four, to the bit") {
  for (const Place place : places)
    for (const char* optimizer : {"adam", "nesterov", "lars"}) {
      const auto [expected, hash] = [&] {  // one device at a time
        Training once(place, options_for(4, optimizer));
        const Evaluation result = once.trainer.fit(once.data, once.data);
        return std::pair(result, once.hash());
      }();
      Training twice(place, options_for(2, optimizer));
      std::vector<std::uint64_t> steps, epochs;
      twice.trainer.add({.step = [&](const StepReport& report) { steps.push_back(report.step); },
                         .epoch = [&](const EpochReport& report) { epochs.push_back(report.epoch); }});
      twice.trainer.fit(twice.data, twice.data);
      const Evaluation found = twice.trainer.fit(twice.data, twice.data);
      CHECK(twice.hash() == hash);
      CHECK(found.loss == expected.loss);
      CHECK(twice.trainer.strategy().updates() == 4 * steps_per_epoch);
      CHECK(epochs == std::vector<std::uint64_t>{1, 2, 3, 4});
      REQUIRE(steps.size() == 4 * steps_per_epoch);
      for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i] == i + 1);
    }
}

TEST_CASE("the schedule of a fit that goes on begins anew") {
  for (const Place place : places) {
    TrainingOptions options = options_for(1);
    options.schedule = "polynomial";
    options.warmup_epochs = 0;
    Training training(place, options);
    std::vector<double> rates;
    training.trainer.add({.step = [&](const StepReport& report) { rates.push_back(report.learning_rate); }});
    training.trainer.fit(training.data);
    training.trainer.fit(training.data);
    REQUIRE(rates.size() == 2 * steps_per_epoch);
    for (std::size_t i = 0; i < steps_per_epoch; ++i) {
      CHECK(rates[i] == Approx(0.05 * (1 - static_cast<double>(i) / steps_per_epoch)));
      CHECK(rates[i + steps_per_epoch] == rates[i]);
    }
  }
}

TEST_CASE("a stop ends one fit, and not the next") {
  Training training(Place::processor, options_for(2));
  training.trainer.add({.step = [&](const StepReport& report) {
    if (report.step == 2) training.trainer.stop();
  }});
  training.trainer.fit(training.data);
  CHECK(training.trainer.statistics().steps() == 3);
  training.trainer.fit(training.data);
  CHECK(training.trainer.statistics().steps() == 3 + 2 * steps_per_epoch);
}

TEST_CASE("fit goes on with smaller data, and refuses larger") {
  for (const Place place : places) {
    Training training(place, options_for(1));
    const MemoryDataset few = toy_images(12, {9, 7, 1}, 4);
    CHECK(training.trainer.fit(training.data, training.data).loss > 0);
    CHECK(training.trainer.fit(few, few).loss > 0);
    Training other(place, options_for(1));
    other.trainer.fit(few);
    require_mentions(message_of<InputError>([&] { other.trainer.fit(training.data); }), {"planned for", "larger"});
  }
}

TEST_CASE("a training that is saved is one fit") {
  const SharedFolder folder;
  TrainingOptions options = options_for(1);
  options.checkpoint_dir = folder.path;
  Training training(Place::processor, options);
  training.trainer.fit(training.data);
  require_mentions(message_of<InputError>([&] { training.trainer.fit(training.data); }), {"checkpoint_dir"});
}

TEST_CASE("all rates follow a factor, in recorded steps too") {
  for (const Place place : places) {
    Training training(place, options_for(3));
    std::vector<double> rates;
    training.trainer.add({.step = [&](const StepReport& report) { rates.push_back(report.learning_rate); },
                          .epoch =
                              [&](const EpochReport& report) {
                                if (report.epoch == 2) training.trainer.strategy().state().set_rate_factor(0.25);
                              }});
    training.trainer.fit(training.data);
    for (std::size_t i = 0; i < rates.size(); ++i) CHECK(rates[i] == (i < 2 * steps_per_epoch ? 0.05 : 0.0125));
    CHECK_THROWS_AS(training.trainer.strategy().state().set_rate_factor(std::nan("")), InputError);
    CHECK_THROWS_AS(training.trainer.strategy().state().set_rate_factor(-1), InputError);
  }
}

TEST_CASE("the metrics file that the options name is written by the trainer itself, over all fits") {
  const SharedFolder folder;
  TrainingOptions options = options_for(1);
  options.metrics = folder.path / "metrics";
  Training training(Place::processor, options);
  training.trainer.fit(training.data, training.data);
  training.trainer.fit(training.data, training.data);
  if (world().rank() != 0) return;
  std::ifstream file(options.metrics);
  std::uint64_t lines = 0, tests = 0;
  for (std::string line; std::getline(file, line);) {
    CHECK(line.starts_with("{\"step\": " + std::to_string(++lines) + ","));
    if (line.find("\"test_loss\"") != std::string::npos) ++tests;
  }
  CHECK(lines == 2 * steps_per_epoch);
  CHECK(tests == 2);
}

TEST_CASE("frozen parameters stay as they are, by whole names or their beginnings; one that is none is refused") {
  const auto parameters = [](Training& training) {
    std::map<std::string, std::vector<float>> values;
    for (const auto& p : training.trainer.strategy().parameters()) {
      const auto numbers = p.trained().as<float>();
      values[p.name].assign(numbers.begin(), numbers.end());
    }
    return values;
  };
  TrainingOptions untrained = options_for(1);
  untrained.freeze = {"dense1", "dense2"};
  Training first(Place::processor, untrained);
  first.trainer.fit(first.data);
  const auto before = parameters(first);
  TrainingOptions options = options_for(1);
  options.freeze = {"dense1", "dense2.bias"};
  options.group_of = [](std::string_view name) {
    return name == "dense2.weight" ? ParameterGroup{.rate_factor = 0.5} : ParameterGroup{};
  };
  Training second(Place::processor, options);
  second.trainer.fit(second.data);
  const auto after = parameters(second);
  for (const auto& [name, values] : before) CHECK((after.at(name) == values) == (name != "dense2.weight"));
  for (const char* none : {"dense3", "dens", "dense1.weigh", "dense1.", "*.scale"}) {
    options.freeze = {none};
    Training bad(Place::processor, options);
    require_mentions(message_of<InputError>([&] { bad.trainer.fit(bad.data); }), {".freeze", none, "dense1.weight"});
  }
}

TEST_CASE("groups by pattern train as the same groups by function, and the last one counts") {
  const auto trained = [](TrainingOptions options) {
    options.optimizer.weight_decay = 0.1;
    options.learning_rate = 0.2;
    Training training(Place::processor, options);
    training.trainer.fit(training.data);
    return training.trainer.strategy().parameter_hash();
  };
  TrainingOptions by_function = options_for(1);
  by_function.group_of = [](std::string_view name) {
    ParameterGroup group;
    if (name.ends_with(".bias")) group.weight_decay = 0;
    if (name == "dense1.weight") group.rate_factor = 0.5;
    if (name == "dense1.bias") group.rate_factor = 2;
    return group;
  };
  TrainingOptions by_pattern = options_for(1);
  by_pattern.groups = {parse_group("*.bias:weight_decay=0"), parse_group("dense1:learning_rate=0.1"),
                       parse_group("dense[1]*bias:learning_rate=0.4")};
  CHECK(trained(by_pattern) == trained(by_function));
  CHECK(trained(by_pattern) != trained(options_for(1)));
  by_pattern.groups.push_back(parse_group("conv*:weight_decay=0"));
  require_mentions(message_of<InputError>([&] { (void)trained(by_pattern); }), {".groups", "'conv*'", "dense1.weight"});
}

TEST_CASE("an average of the parameters goes on from a checkpoint, to the bit, and is what is saved") {
  for (const Place place : places) {
    const SharedFolder folder, files;
    const auto train = [&](TrainingOptions options) {
      auto training = std::make_unique<Training>(place, std::move(options));
      training->trainer.fit(training->data, training->data);
      return training;
    };
    const auto hashes = [](Training& training) {
      std::string of_average;
      training.trainer.strategy().state().with_average([&] { of_average = training.hash(); });
      return std::pair(training.hash(), of_average);
    };
    TrainingOptions options = options_for(3);
    options.ema_decay = 0.75;
    if (place == Place::processor) options.save = files.path / "average.safetensors";
    const auto whole = hashes(*train(options));
    CHECK(whole.first != whole.second);
    if (place == Place::processor) {
      TrainingOptions unchanged = options_for(1);
      unchanged.init = std::exchange(options.save, {});
      unchanged.freeze = {"dense*"};
      CHECK(train(unchanged)->hash() == whole.second);
    }
    options.checkpoint_dir = folder.path;
    run_until(5, options, train);
    options.resume = true;
    CHECK(hashes(*train(options)) == whole);
  }
}

TEST_CASE("the best epoch's average is the model that remains, and one that begins late begins with the parameters") {
  const SharedFolder folder;
  TrainingOptions options = options_for(3);
  options.ema_decay = 0.75;
  options.keep_best = true;
  Training best(Place::processor, options);
  double least = std::numeric_limits<double>::infinity();
  best.trainer.add({.epoch = [&](const EpochReport& report) { least = std::min(least, report.test_loss); }});
  const double loss = best.trainer.fit(best.data, best.data).loss;
  CHECK(loss == least);
  const BatchPlan plan(best.data.size(), 25, best.trainer.strategy().shard());
  BatchLoader loader(best.data, SampleOrder(best.data.size(), 0, false), plan);
  CHECK(best.trainer.strategy().evaluate(loader).loss == Approx(least).epsilon(1e-6));  // in other batches

  options = options_for(1);
  options.checkpoint_dir = folder.path;
  Training without(Place::processor, options);
  without.trainer.fit(without.data);
  options.ema_decay = 0.75;
  options.resume = true;
  options.allow_changes = {"ema-decay"};
  Training late(Place::processor, options);
  late.trainer.fit(late.data);
  late.trainer.strategy().state().with_average([&] { CHECK(late.hash() == without.hash()); });
}

}  // namespace hook_test
