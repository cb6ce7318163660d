// Trainings whose ranks split a model's operations: epochs, checkpoints that other strategies go on from, files.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/predictor.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/message.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"
#include "trainer/small_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace split_training_test {
namespace {

std::unique_ptr<ReportedTraining> run_split(TrainingOptions options) {
  return fitted_training<ReportedTraining>(std::move(options));
}

std::unique_ptr<ReportedTraining> run_without_norms(TrainingOptions options) {
  auto training = std::make_unique<ReportedTraining>(std::move(options), convolutions_without_norm());
  training->fit();
  return training;
}

TrainingOptions split_by(const std::string& strategy) {
  TrainingOptions options;
  options.strategy = strategy;
  options.optimizer.name = "adam";
  options.clip_norm = 0.5;
  if (strategy == "split") options.strategy = Split{.layers = {"conv1=columns", "conv2=columns", "dense1=rows"}};
  return options;
}

}  // namespace

TEST_CASE("a split training that was ended and goes on has the bits of one that was not") {
  TrainingOptions training = split_by("split");
  if (world().size() == 4) training.strategy.as<Split>()->parts = 2;
  training.ema_decay = 0.8;
  training.prune = 0.5;
  const std::string whole = run_split(training)->hash();
  for (const std::uint64_t step : {3, 4, 6}) {
    INFO(step);
    const SharedFolder folder;
    run_until(step, saving_in(folder, training), run_split);
    TrainingOptions options = saving_in(folder, training);
    options.resume = options.exact = true;
    CHECK(run_split(options)->hash() == whole);
  }
}

TEST_CASE("a split training is a whole model's, epoch by epoch") {
  const auto parts = run_without_norms(split_by("split")), whole = run_without_norms(split_by("mirrored"));
  CHECK_FALSE(parts->hash().empty());
  check_epochs(*parts, *whole);
}

TEST_CASE("every strategy goes on from a split training's checkpoint, and it from theirs") {
  const auto expected = run_without_norms(split_by("mirrored"));
  for (const auto& [saves, resumes] : {std::pair("mirrored", "split"), {"split", "mirrored"}, {"split", "sharded"}}) {
    INFO(saves << ", then " << resumes);
    const SharedFolder folder;
    run_until(6, saving_in(folder, split_by(saves)), run_without_norms);
    TrainingOptions options = saving_in(folder, split_by(resumes));
    options.resume = true;
    const auto training = run_without_norms(options);
    CHECK_FALSE(training->hash().empty());
    CHECK(training->result.loss == Approx(expected->result.loss).epsilon(1e-3));
  }
}

TEST_CASE("it goes on from itself split otherwise, to rounding") {
  const auto expected = run_without_norms(split_by("split"));
  const SharedFolder folder;
  run_until(6, saving_in(folder, split_by("split")), run_without_norms);
  TrainingOptions options = saving_in(folder, split_by("split"));
  options.strategy = Split{.layers = {"dense1=columns", "dense2=rows"}};
  options.resume = true;
  CHECK(run_without_norms(options)->result.loss == Approx(expected->result.loss).epsilon(1e-3));
}

TEST_CASE("what a split training saves is the whole model, and what it predicts is every sample's") {
  const SharedFolder folder;
  TrainingOptions options = split_by("split");
  options.save = folder.path / "model.safetensors";
  options.predictions = folder.path / "predictions.safetensors";
  const auto training = run_split(options);
  Communicator all = world().communicator();
  all.barrier();
  Predictor predictor(training->model, training->data.fields(), {.batch_size = 16});
  predictor.load(options.save);
  const Predictions expected = predictor.predict(training->data);
  const Safetensors found = read_safetensors(options.predictions);
  REQUIRE(found.tensors.size() == 1);
  CHECK(relative_distance(found.tensors[0].values, expected.values) < 1e-4);
  TrainingOptions again = split_by("split");
  again.init = options.save;
  again.freeze = {"*"};
  CHECK(run_split(again)->hash() == training->hash());
}

TEST_CASE("the best epoch's model comes back to all parts") {
  TrainingOptions options = split_by("split");
  options.keep_best = true;
  options.learning_rate = 0.5;  // later epochs are worse
  const auto training = run_split(options);
  double best = training->epochs.front().test_loss;
  for (const EpochReport& report : training->epochs) best = std::min(best, report.test_loss);
  CHECK(training->result.loss == Approx(best));
  CHECK_FALSE(training->hash().empty());
}

TEST_CASE("a step that is not finite is skipped, or taken back, by all parts") {
  for (const OnNonfinite choice : {OnNonfinite::skip, OnNonfinite::rollback}) {
    const SharedFolder folder;
    TrainingOptions options = saving_in(folder, split_by("split"));
    options.on_nonfinite = choice;
    options.checkpoint_every.steps = 3;
    for (int rank = 0; rank < world().size(); ++rank)  // whose batches are the same
      options.faults.push_back({FaultKind::nan, 5, rank});
    const auto training = run_split(options);
    CHECK(std::isfinite(training->result.loss));
    CHECK_FALSE(training->hash().empty());
  }
}

TEST_CASE("options that make no sense with a split model are refused") {
  const auto refused = [](const auto& change) {
    TrainingOptions options = split_by("split");
    change(options);
    return message_of<InputError>([&] { run_split(options); });
  };
  require_mentions(refused([](TrainingOptions& o) { o.shares = "measured"; }), {".shares", "mirrored"});
  require_mentions(refused([](TrainingOptions& o) { o.audit_every = 2; }), {".audit_every", "mirrored"});
  require_mentions(refused([](TrainingOptions& o) { o.precision = Precision::mixed_bfloat16; }), {".precision"});
  require_mentions(refused([](TrainingOptions& o) { o.device = DeviceChoice::cuda; }), {".device = cuda"});
  require_mentions(refused([](TrainingOptions& o) { o.strategy.as<Split>()->layers = {"dense1=up"}; }),
                   {"'up'", "columns"});
  if (world().size() > 1)
    require_mentions(refused([](TrainingOptions& o) { o.strategy.as<Split>()->parts = 5; }),
                     {".parts", "multiple of 5"});
}

}  // namespace split_training_test
