// Weights that a training prunes: when, how many, also after it was interrupted, repaired or rolled back, and in files.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/pruning.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/io/whole_file.hpp>
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

namespace pruning_test {
namespace {

enum class Place { processor, device };
constexpr Place places[] = {Place::processor, Place::device};

/// Of 12 steps the ones from the 3rd to the 9th prune.
TrainingOptions pruning(double share = 0.8) {
  TrainingOptions options = small({});
  options.optimizer.name = "adam";
  options.learning_rate = 0.01;
  options.prune = share;
  options.prune_begin = 0.25;
  options.prune_end = 0.75;
  return options;
}

class Notes final : public EventSink {
 public:
  void on_note(std::string_view note) override { text.append(note).append("\n"); }
  std::string text;
};

struct Training {
  Training(Place place, TrainingOptions options) : trainer(world(), model, loss, std::move(options), &notes) {
    if (place == Place::device) {
      devices.emplace(AllreduceAlgorithm::staged, world().communicator());
      trainer.set_platform(
          {ComputeDevice::on(devices->device), make_fake_primitives(DType::float32), make_fake_updater, fake_gather});
    } else {
      trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
    }
    trainer.add({.step = [this](const StepReport&) { zeros.push_back(trainer.strategy().state().zeros().zeros); },
                 .settles = true});
  }
  Evaluation fit() { return trainer.fit(data, data); }
  std::string hash() { return trainer.strategy().parameter_hash(); }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  std::optional<Devices> devices;  // before what uses them
  Notes notes;
  Sequential model{Flatten(), Dense(33), ReLU(), Dense(4)};
  SoftmaxCrossEntropy loss;
  std::vector<std::uint64_t> zeros;  ///< after each step
  Trainer trainer;
};

std::unique_ptr<Training> trained(Place place, TrainingOptions options) {
  auto training = std::make_unique<Training>(place, std::move(options));
  training->fit();
  return training;
}

std::uint64_t expected_zeros(double share) {
  return static_cast<std::uint64_t>(std::llround(share * 63 * 33) + std::llround(share * 33 * 4));
}

}  // namespace

TEST_CASE("weights become zero by the schedule, also of accumulated steps, and that is told") {
  const PruningSchedule schedule(0.8, 3, 9);
  for (const Place place : places)
    for (const std::size_t accumulate : {1, 2}) {
      TrainingOptions options = pruning();
      options.accumulate = accumulate;
      const auto training = trained(place, options);
      REQUIRE(training->zeros.size() == steps);
      for (std::uint64_t step = 1; step <= steps; ++step)
        CHECK(training->zeros[step - 1] == expected_zeros(schedule.share_after(step)));
      CHECK_FALSE(training->hash().empty());  // throws where replicas differ
      if (world().rank() != 0) continue;
      require_mentions(training->notes.text, {"80.01 % of 2211 weights are zero"});
      CHECK(std::ranges::count(training->notes.text, '%') == 3);  // each epoch
    }
}

TEST_CASE("files have the zeros, of the parameters or of their average, and the summary the share") {
  for (const double ema_decay : {0.0, 0.9}) {
    const SharedFolder folder;
    TrainingOptions options = pruning(0.9);
    options.ema_decay = ema_decay;
    options.save = folder.path / "model.safetensors";
    options.summary_json = folder.path / "summary.json";
    trained(Place::processor, options);
    if (world().rank() != 0) continue;
    std::uint64_t zeros = 0;
    for (const NamedTensor& tensor : read_safetensors(options.save).tensors) {
      const auto found = static_cast<std::uint64_t>(std::ranges::count(tensor.values, 0.0F));
      if (tensor.name.ends_with(".weight"))
        zeros += found;
      else
        CHECK(found < tensor.values.size());
    }
    CHECK(zeros == expected_zeros(0.9));
    require_mentions(read_text(options.summary_json), {R"("weights": 2211)", R"("sparsity": 0.900)"});
  }
}

TEST_CASE("a pruned training that is interrupted has the bits of one that was not") {
  for (const Place place : places)
    for (const std::uint64_t step : {2, 4, 6, 9, 11}) {
      TrainingOptions options = pruning();
      options.ema_decay = step % 2 == 0 ? 0.9 : 0;
      const auto whole = trained(place, options);
      const SharedFolder folder;
      options.checkpoint_dir = folder.path;
      run_until(step, options, [&](TrainingOptions first) { return trained(place, std::move(first)); });
      options.resume = options.exact = true;
      const auto rest = trained(place, options);
      INFO("ended after step " << step);
      CHECK(rest->hash() == whole->hash());
      REQUIRE(rest->zeros.size() == steps - step);
      CHECK(std::equal(rest->zeros.begin(), rest->zeros.end(), whole->zeros.begin() + static_cast<long>(step)));
    }
}

TEST_CASE("a checkpoint goes on with the share that it had, and with the length") {
  const SharedFolder folder;
  TrainingOptions options = pruning();
  options.checkpoint_dir = folder.path;
  run_until(5, options, [&](TrainingOptions first) { return trained(Place::processor, std::move(first)); });
  options.resume = true;
  TrainingOptions other = options;
  other.prune = 0.5;
  require_mentions(message_of<InputError>([&] { trained(Place::processor, other); }), {"prune is '0.5' here", "0.8"});
  other = options;
  other.epochs = 4;
  require_mentions(message_of<InputError>([&] { trained(Place::processor, other); }), {"steps is '16' in all here"});
}

TEST_CASE("replicas are repaired across prunings, to the bit") {
  if (world().size() == 1) return;  // replicas that differ take two
  for (const Place place : places) {
    TrainingOptions options = pruning();
    options.audit_every = 4;
    options.on_divergence = OnDivergence::rollback;
    const auto whole = trained(place, options);
    for (const char* step : {"1", "3", "4", "6", "8", "9", "11"}) {
      options.faults = {parse_fault("flip@" + std::string(step) + ":1")};
      const auto repaired = trained(place, options);
      INFO("step " << step);
      CHECK(repaired->hash() == whole->hash());
    }
  }
}

TEST_CASE("after a rollback to a checkpoint with fewer zeros, as many are zero as before") {
  for (const Place place : places)
    for (const std::uint64_t step : {6, 11}) {
      const SharedFolder folder;
      TrainingOptions options = pruning();
      options.checkpoint_dir = folder.path;
      options.checkpoint_every.steps = 5;
      options.on_nonfinite = OnNonfinite::rollback;
      options.faults = {parse_fault("nan@" + std::to_string(step) + ":0")};
      const auto training = trained(place, options);
      const PruningSchedule schedule(0.8, 3, 9);
      REQUIRE(training->zeros.size() == steps);
      for (std::uint64_t s = 1; s <= steps; ++s)
        CHECK(training->zeros[s - 1] == expected_zeros(schedule.share_after(s)));
      CHECK_FALSE(training->hash().empty());
    }
}

TEST_CASE("another fit prunes anew, and what was zero stays") {
  Training training(Place::processor, pruning());
  training.fit();
  training.fit();
  REQUIRE(training.zeros.size() == 2 * steps);
  for (std::uint64_t step = steps; step < 2 * steps; ++step) CHECK(training.zeros[step] == expected_zeros(0.8));
}

TEST_CASE("named parameters alone are pruned, and frozen ones are not") {
  TrainingOptions options = pruning();
  options.prune_only = {"dense2"};
  Training one(Place::processor, options);
  one.fit();
  CHECK(one.trainer.strategy().state().zeros().weights == 33 * 4 + 4);
  options.prune_only = {};
  options.freeze = {"dense1"};
  Training frozen(Place::processor, options);
  frozen.fit();
  CHECK(frozen.trainer.strategy().state().zeros().weights == 33 * 4);
}

TEST_CASE("what cannot be pruned is refused, by the options' names") {
  const auto refused = [](const auto& change, std::initializer_list<std::string_view> words) {
    TrainingOptions options = pruning();
    change(options);
    require_mentions(message_of<InputError>([&] { trained(Place::processor, options); }), words);
  };
  for (const double share : {-0.1, 1.0, std::nan("")}) refused([&](auto& o) { o.prune = share; }, {".prune", "share"});
  refused([](auto& o) { o.prune_begin = 0.8; }, {".prune_begin", ".prune_end", "0.8"});
  refused([](auto& o) { o.prune_end = 1.5; }, {".prune_end", "1.5"});
  refused([](auto& o) { o.prune_end = std::nan(""); }, {".prune_end"});
  refused([](auto& o) { o.keep_best = true; }, {".keep_best", ".prune"});
  refused([](auto& o) { o.early_stopping = 2; }, {".early_stopping", ".prune"});
  refused([](auto& o) { o.prune_only = {"conv7"}; }, {".prune_only", "conv7", "dense1.weight"});
  refused([](auto& o) { o.freeze = {"dense*"}; }, {".prune", "no weight", ".prune_only"});
  const TrainingOptions unset;
  refused(
      [&](auto& o) {
        o.prune = 0, o.prune_begin = unset.prune_begin, o.prune_end = unset.prune_end, o.prune_only = {"dense1"};
      },
      {".prune_only", ".prune"});
}

}  // namespace pruning_test
