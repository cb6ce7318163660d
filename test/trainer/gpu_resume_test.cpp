// Trainings on GPUs that are saved, ended and gone on with, there and on processors. Needs a GPU.
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include <memory>
#include <utility>

using namespace ronda;
using namespace ronda::test;

namespace {

struct Training {
  explicit Training(TrainingOptions options) : trainer(world(), model, loss, small(std::move(options))) {}
  std::string hash() { return trainer.strategy().parameter_hash(); }
  std::vector<float> parameters() {
    std::vector<float> all;
    for (const auto& p : trainer.strategy().parameters()) {
      const auto values = to_file(p, p.trained());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  MemoryDataset data = toy_images(90, {14, 14, 4}, 4);
  Sequential model{Conv2d(16, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(33), ReLU(), Dense(4)};
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

std::unique_ptr<Training> trained(TrainingOptions options) {
  pretend_hosts();
  auto training = std::make_unique<Training>(std::move(options));
  training->trainer.fit(training->data, training->data);
  return training;
}

TrainingOptions on(DeviceChoice device, TrainingOptions options) {
  options.device = device;
  return options;
}

}  // namespace

TEST_CASE("a training on GPUs that was ended and saved goes on to the bits of one that was not") {
  for (const auto way : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::staged})
    for (const char* optimizer : {"nesterov", "adamw"}) {
      const SharedFolder folder;
      TrainingOptions options = on(DeviceChoice::cuda, saving_in(folder, 2));
      options.plan = folder.path / "plan.json";  // what the first chose by timing the others take over
      options.optimizer.name = optimizer;
      options.allreduce = way;
      TrainingOptions unsaved = options;
      unsaved.checkpoint_dir.clear();
      unsaved.checkpoint_every = {};
      const auto whole = trained(unsaved);
      run_until(steps_per_epoch + 1, options, trained);
      options.resume = options.exact = true;
      CHECK(trained(options)->hash() == whole->hash());
      for (const auto& place : list_checkpoints(folder.path)) {  // also those that were copied beside steps
        unsaved.resume_from = place.path;
        unsaved.exact = true;
        CHECK(trained(unsaved)->hash() == whole->hash());
      }
    }
}

TEST_CASE("a training on GPUs by micro-batches goes on to the same bits, and follows that by whole batches") {
  struct Way {
    Precision precision;
    double distance;  ///< from whole batches: a ReLU or a tie may fall otherwise; with 8 bits, often
  };
  for (const auto& [precision, distance] : {Way{Precision::float32, 5e-3}, Way{Precision::mixed_bfloat16, 5e-2}}) {
    INFO(name_of(precision));
    const SharedFolder folder;
    TrainingOptions options = on(DeviceChoice::cuda, saving_in(folder));
    options.precision = precision;
    options.accumulate = 3;
    options.plan = folder.path / "plan.json";
    TrainingOptions unsaved = options, batches = on(DeviceChoice::cuda, {});
    unsaved.checkpoint_dir.clear();
    batches.precision = precision;
    const auto whole = trained(unsaved), by_batches = trained(batches);
    CHECK(relative_distance(whole->parameters(), by_batches->parameters()) < distance);
    run_until(5, options, trained);
    options.resume = options.exact = true;
    CHECK(trained(options)->hash() == whole->hash());
  }
}

TEST_CASE("a checkpoint of processors goes on on GPUs, and the other way round") {
  for (const auto& [first, second] :
       {std::pair(DeviceChoice::cpu, DeviceChoice::cuda), std::pair(DeviceChoice::cuda, DeviceChoice::cpu)}) {
    const SharedFolder folder;
    const auto whole = trained(on(first, {}));
    run_until(5, on(first, saving_in(folder)), trained);
    TrainingOptions options = on(second, saving_in(folder));
    options.resume = true;
    const auto rest = trained(options);
    CHECK(rest->trainer.statistics().steps() == steps - 5);
    CHECK(relative_distance(rest->parameters(), whole->parameters()) < 5e-3);  // a ReLU or a tie may fall the other way
  }
}

TEST_CASE("what is not finite on a GPU is skipped or rolled back on all") {
  for (const auto choice : {OnNonfinite::skip, OnNonfinite::rollback}) {
    const SharedFolder folder;
    TrainingOptions options = on(DeviceChoice::cuda, saving_in(folder));
    run_until(6, options, trained);
    options.resume = true;
    options.on_nonfinite = choice;
    options.faults = {parse_fault("nan@8:" + std::to_string(world().size() - 1))};
    const auto training = trained(options);
    CHECK(training->trainer.strategy().updates() == (choice == OnNonfinite::skip ? steps - 1 : steps - 2));
    CHECK_FALSE(training->hash().empty());  // throws where replicas differ
  }
}

TEST_CASE("a bit that flips on a GPU is found, and going back leaves the bits") {
  if (world().size() == 1) return;  // replicas that differ take two
  const SharedFolder folder;
  TrainingOptions options = on(DeviceChoice::cuda, {});
  options.plan = folder.path / "plan.json";
  options.audit_every = 3;
  const auto whole = trained(options);
  options.faults = {parse_fault("flip@6:1")};
  CHECK_THROWS_AS(trained(options), Error);
  options.on_divergence = OnDivergence::rollback;
  CHECK(trained(options)->hash() == whole->hash());
}
