// Trainings whose ranks are stages of a pipeline: epochs, checkpoints that other strategies go on from, files.
#include <algorithm>
#include <cmath>
#include <filesystem>
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

namespace pipeline_training_test {
namespace {

std::unique_ptr<ReportedTraining> run(TrainingOptions options, Sequential model = convolutions_with_norm()) {
  auto training = std::make_unique<ReportedTraining>(std::move(options), std::move(model));
  training->fit();
  return training;
}

TrainingOptions staged(const std::string& strategy) {
  TrainingOptions options;
  options.strategy = strategy;
  options.accumulate = 3;
  options.optimizer.name = "adam";
  options.clip_norm = 0.5;
  return options;
}

/// Cut by hand: equal runs are cut alike.
std::vector<std::string> cuts_by_hand() {
  std::vector<std::string> names{"conv2", "dense1", "dense2"};
  names.resize(static_cast<std::size_t>(world().size()) - 1);
  return names;
}

TrainingOptions by_hand(const std::string& strategy) {
  TrainingOptions options = staged(strategy);
  if (strategy == "pipeline") options.strategy = Pipeline{.cuts = cuts_by_hand()};
  return options;
}

void save_after(std::uint64_t step, const SharedFolder& folder, TrainingOptions options,
                Sequential (*model)() = convolutions_with_norm) {
  options.checkpoint_dir = folder.path;
  run_until(step, options, [&](TrainingOptions first) { return run(std::move(first), model()); });
}

bool alone() { return world().size() == 1; }

}  // namespace

TEST_CASE("a pipeline trains as a whole model does, epoch by epoch") {
  if (alone()) return;
  const auto parts = run(staged("pipeline"), convolutions_without_norm());
  CHECK_FALSE(parts->hash().empty());
  TrainingOptions options = staged("mirrored");
  options.accumulate = 1;
  const auto whole = run(options, convolutions_without_norm());
  check_epochs(*parts, *whole);
  CHECK(parts->trainer.strategy().stages().size() == static_cast<std::size_t>(world().size()));
  CHECK(whole->trainer.strategy().stages().empty());
}

namespace {

void check_that_it_goes_on(const TrainingOptions& training) {
  const std::string whole = run(training)->hash();
  for (const std::uint64_t step : {3, 4, 6}) {
    INFO(step);
    const SharedFolder folder;
    save_after(step, folder, training);
    TrainingOptions options = training;
    options.checkpoint_dir = folder.path;
    options.resume = options.exact = true;
    CHECK(run(options)->hash() == whole);
  }
}

TrainingOptions two_pipelines() {
  TrainingOptions options = staged("pipeline");
  options.strategy = Pipeline{.cuts = {"dense1"}};
  return options;
}

}  // namespace

TEST_CASE("a pipeline that was ended and goes on has the bits of one that was not") {
  if (alone()) return;
  check_that_it_goes_on(by_hand("pipeline"));
  if (world().size() == 4) check_that_it_goes_on(two_pipelines());
}

TEST_CASE("bits depend on how pipelines sum their gradients, so going on exactly asks for the same") {
  if (world().size() != 4) return;
  const SharedFolder folder;
  TrainingOptions options = two_pipelines();
  options.allreduce = AllreduceAlgorithm::ring;
  save_after(3, folder, options);
  options.checkpoint_dir = folder.path;
  options.resume = options.exact = true;
  CHECK_FALSE(run(options)->hash().empty());
  options.allreduce = AllreduceAlgorithm::halving;
  CHECK_THROWS_AS(run(options), Error);
}

TEST_CASE("an average of the parameters, and weights that are pruned, are those of a whole model") {
  if (alone()) return;
  const auto pruned_by = [](const std::string& strategy) {
    TrainingOptions options = by_hand(strategy);
    options.ema_decay = 0.8;
    options.prune = 0.5;
    return options;
  };
  const auto parts = run(pruned_by("pipeline"), convolutions_without_norm());
  const auto whole = run(pruned_by("mirrored"), convolutions_without_norm());
  // Equal to rounding, 1e-7 as measured, unless that makes it prune another weight; a loss is about 0.25.
  CHECK(std::abs(parts->result.loss - whole->result.loss) < 1e-2);
  const TrainingState::Zeros found = parts->trainer.strategy().state().zeros(),
                             expected = whole->trainer.strategy().state().zeros();
  CHECK(found.weights == expected.weights);
  CHECK(found.zeros == expected.zeros);
}

TEST_CASE("with an average and pruned weights, too, a pipeline goes on with its bits") {
  if (alone()) return;
  TrainingOptions options = by_hand("pipeline");
  options.ema_decay = 0.8;
  options.prune = 0.5;
  const std::string hash = run(options)->hash();
  const SharedFolder folder;
  save_after(7, folder, options);
  options.checkpoint_dir = folder.path;
  options.resume = options.exact = true;
  CHECK(run(options)->hash() == hash);
}

TEST_CASE("where cuts are measured, a training that goes on is cut as before") {
  if (alone()) return;
  const SharedFolder folder;
  save_after(5, folder, staged("pipeline"));
  TrainingOptions options = staged("pipeline");
  options.checkpoint_dir = folder.path;
  options.resume = options.exact = true;
  CHECK(run(options)->result.loss > 0);
}

TEST_CASE("every strategy goes on from a pipeline's checkpoint, and a pipeline from theirs") {
  if (alone()) return;
  const auto expected = run(by_hand("mirrored"), convolutions_without_norm());
  for (const char* saves : {"mirrored", "sharded", "pipeline"})
    for (const char* resumes : {"mirrored", "sharded", "pipeline"}) {
      INFO(saves << ", then " << resumes);
      const auto gone_on = [&](Sequential (*model)()) {
        const SharedFolder folder;
        save_after(6, folder, by_hand(saves), model);
        TrainingOptions options = by_hand(resumes);
        options.checkpoint_dir = folder.path;
        options.resume = true;
        auto training = run(options, model());
        CHECK(training->epochs.size() == 2);
        CHECK_FALSE(training->hash().empty());
        return training;
      };
      // As one that nothing interrupted, to rounding: a part in a million, as measured.
      CHECK(gone_on(convolutions_without_norm)->result.loss == Approx(expected->result.loss).epsilon(1e-3));
      // Batch norms see other parts of a step where it is cut otherwise.
      const auto normed = gone_on(convolutions_with_norm);
      CHECK(std::isfinite(normed->result.loss));
      CHECK(normed->result.loss < normed->epochs.front().train_loss);
    }
}

TEST_CASE("it goes on from itself cut otherwise") {
  if (world().size() != 2) return;
  const auto expected = run(by_hand("pipeline"));
  for (const char* name : {"dense1", "dense2", "flatten1"}) {
    const SharedFolder folder;
    save_after(6, folder, by_hand("pipeline"));
    TrainingOptions options = by_hand("pipeline");
    options.strategy = Pipeline{.cuts = {name}};
    options.checkpoint_dir = folder.path;
    options.resume = true;
    CHECK(run(options)->result.loss == Approx(expected->result.loss).epsilon(1e-3));
  }
}

TEST_CASE("what it saves is the whole model, and what it predicts is every sample's") {
  if (alone()) return;
  const SharedFolder folder;
  TrainingOptions options = by_hand("pipeline");
  options.save = folder.path / "model.safetensors";
  options.predictions = folder.path / "predictions.safetensors";
  options.summary_json = folder.path / "summary.json";
  const auto training = run(options);
  Communicator all = world().communicator();
  all.barrier();
  Predictor predictor(training->model, training->data.fields(), {.batch_size = 16});
  predictor.load(options.save);
  const Predictions expected = predictor.predict(training->data);
  const Safetensors found = read_safetensors(options.predictions);
  REQUIRE(found.tensors.size() == 1);
  CHECK(relative_distance(found.tensors[0].values, expected.values) < 1e-4);
  CHECK(std::filesystem::file_size(options.summary_json) > 0);
  TrainingOptions again = by_hand("pipeline");
  again.init = options.save;
  again.freeze = {"*"};
  CHECK(run(again)->hash() == training->hash());
}

TEST_CASE("the best epoch's model comes back to all stages") {
  if (alone()) return;
  TrainingOptions options = by_hand("pipeline");
  options.keep_best = true;
  options.learning_rate = 0.5;  // later epochs are worse
  const auto training = run(options);
  double best = training->epochs.front().test_loss;
  for (const EpochReport& report : training->epochs) best = std::min(best, report.test_loss);
  CHECK(training->result.loss == Approx(best));
  CHECK_FALSE(training->hash().empty());
}

TEST_CASE("a step that is not finite is skipped, or taken back, by all stages") {
  if (alone()) return;
  for (const OnNonfinite choice : {OnNonfinite::skip, OnNonfinite::rollback}) {
    const SharedFolder folder;
    TrainingOptions options = by_hand("pipeline");
    options.on_nonfinite = choice;
    options.checkpoint_dir = folder.path;
    options.checkpoint_every.steps = 3;
    for (int rank = 0; rank < world().size(); ++rank)  // whose batches are the same
      options.faults.push_back({FaultKind::nan, 5, rank});
    const auto training = run(options);
    CHECK(std::isfinite(training->result.loss));
    CHECK_FALSE(training->hash().empty());
  }
}

TEST_CASE("options that make no sense with a pipeline are refused") {
  const auto refused = [](const auto& change) {
    TrainingOptions options = staged("pipeline");
    change(options);
    return message_of<InputError>([&] { run(options); });
  };
  if (alone()) {
    require_mentions(refused([](TrainingOptions&) {}), {"two stages or more", "mirrored"});
    return;
  }
  require_mentions(refused([](TrainingOptions& o) { o.shares = "measured"; }), {".shares", "mirrored"});
  require_mentions(refused([](TrainingOptions& o) { o.audit_every = 2; }), {".audit_every", "mirrored"});
  require_mentions(refused([](TrainingOptions& o) { o.precision = Precision::mixed_bfloat16; }), {".precision"});
  require_mentions(refused([](TrainingOptions& o) { o.device = DeviceChoice::cuda; }), {".device = cuda"});
  require_mentions(refused([](TrainingOptions& o) { o.strategy = Pipeline{.stages = 5}; }),
                   {".stages", "multiple of 5"});
}

}  // namespace pipeline_training_test
