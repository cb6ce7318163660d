// Every strategy with every feature, as docs/strategies.md shows them: each cell of the table is trained.
#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "strategy/step_by_hand.hpp"
#include "support/devices.hpp"
#include "support/fake_training.hpp"
#include "support/message.hpp"
#include "support/rounded_primitives.hpp"
#include "support/toy_data.hpp"
#include "trainer/conformance_table.hpp"
#include "trainer/saved_training.hpp"

using namespace ronda;
using namespace ronda::test;

namespace conformance_test {
namespace {

Sequential images_model() {
  return Sequential(Conv2d(8, 3), ReLU(), Conv2d(6, 3), ReLU(), Flatten(), Dense(21), ReLU(), Dense(4));
}
Sequential norms_model() {
  return Sequential(Conv2d(8, 3), SyncBatchNorm(), ReLU(), Conv2d(6, 3), ReLU(), Flatten(), Dense(21), ReLU(),
                    Dense(4));
}
Sequential texts_model() {
  return Sequential(EmbeddingBag(toy_words, 6, BagMode::mean, {.sparse = true}), Dense(9), ReLU(), Dense(9), ReLU(),
                    Dense(2));
}

/// A training of 12 steps, of which the last of each epoch has a short batch.
struct Training {
  Training(TrialKind trial, TrainingOptions options)
      : data(trial == TrialKind::texts ? toy_texts(90) : toy_images(90, {9, 7, 1}, 4)),
        model(trial == TrialKind::texts   ? texts_model()
              : trial == TrialKind::norms ? norms_model()
                                          : images_model()),
        trainer(world(), model, loss, options) {
    if (trial == TrialKind::device) {
      devices.emplace(AllreduceAlgorithm::staged, world().communicator());
      trainer.set_platform(
          {ComputeDevice::on(devices->device), make_fake_primitives(), make_fake_updater, fake_gather});
    } else {
      trainer.set_platform({ComputeDevice::processor(), options.precision == Precision::float32
                                                            ? make_reference_primitives()
                                                            : make_rounded_primitives(DType::bfloat16)});
    }
    trainer.add({.epoch = [this](const EpochReport& report) { losses.push_back(report.test_loss); }});
  }
  /// The parameters, in the layout of files. Collective.
  std::vector<float> parameters() {
    trainer.strategy().state().gather_state();
    std::vector<float> all;
    for (const Parameter& parameter : trainer.strategy().parameters()) {
      const auto values = to_file(parameter, Tensor(parameter.trained().desc(), parameter.trained().data()));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  std::optional<Devices> devices;  // before what uses them
  MemoryDataset data;
  Sequential model;
  SoftmaxCrossEntropy loss;
  Trainer trainer;
  std::vector<double> losses;  ///< of the test after each epoch
};

std::unique_ptr<Training> trained(TrialKind trial, TrainingOptions options) {
  auto training = std::make_unique<Training>(trial, std::move(options));
  training->trainer.fit(training->data, training->data);
  return training;
}

/// One epoch by the trainer, and four steps in a loop that calls the parts of a step.
std::unique_ptr<Training> trained_by_hand(TrainingOptions options) {
  options.epochs = 1;
  const std::uint64_t batch = options.global_batch_size;
  auto training = trained(TrialKind::by_hand, std::move(options));
  auto* strategy = dynamic_cast<MirroredStrategy*>(&training->trainer.strategy());
  if (strategy == nullptr) throw LogicError("the strategy's steps have no parts to call");
  const BatchPlan plan(training->data.size(), batch, strategy->shard());
  BatchLoader loader(training->data, SampleOrder(training->data.size(), 1, true), plan);
  for (int k = 0; k < 4; ++k) {
    if (k == 3) strategy->synchronise_next();
    step_by_hand(*strategy, loader.next());
  }
  return training;
}

std::unique_ptr<Training> trained_in_two(TrainingOptions options) {
  const SharedFolder folder;
  options.checkpoint_dir = folder.path;
  options.checkpoint_every.steps = 6;
  options.exact = false;
  run_until(6, options, [](TrainingOptions part) { return trained(TrialKind::images, std::move(part)); });
  options.resume = options.exact = true;
  return trained(TrialKind::images, std::move(options));
}

std::unique_ptr<Training> tried(TrialKind trial, const TrainingOptions& options) {
  if (trial == TrialKind::by_hand) return trained_by_hand(options);
  if (trial == TrialKind::resumed) return trained_in_two(options);
  return trained(trial, options);
}

TrainingOptions options_of(const Feature& feature, const StrategyColumn& column) {
  TrainingOptions options = small({});
  options.optimizer.name = "momentum";  // Adam makes whole steps of roundings
  options.learning_rate = 0.02;         // asynchronous workers do not take a larger one
  column.choose(options);
  if (auto* split = options.strategy.as<Split>(); split != nullptr && feature.trial == TrialKind::texts)
    split->layers = {"dense1=columns", "dense2=rows"};
  feature.change(options);
  return options;
}

/// What the strategy is compared with: `mirrored`, or itself where a training was interrupted.
std::vector<float> expected_of(const Feature& feature, const StrategyColumn& column) {
  if (feature.trial == TrialKind::resumed) {
    const SharedFolder folder;
    TrainingOptions options = options_of(feature, column);
    options.checkpoint_dir = folder.path;
    options.checkpoint_every.steps = 6;  // local_sgd: a checkpoint synchronises
    options.exact = false;
    return trained(TrialKind::images, options)->parameters();
  }
  TrainingOptions options = options_of(feature, columns_of_strategies().front());
  return tried(feature.trial == TrialKind::device ? TrialKind::images : feature.trial, options)->parameters();
}

void check_trained(const Feature& feature, const StrategyColumn& column, Holds holds) {
  const auto training = tried(feature.trial, options_of(feature, column));
  CHECK_FALSE(training->trainer.strategy().parameter_hash().empty());  // throws where ranks differ
  if (feature.trial != TrialKind::by_hand) CHECK(training->losses.back() < training->losses.front());
  if (holds == Holds::works) return;
  const std::vector<float> parameters = training->parameters(), expected = expected_of(feature, column);
  if (holds == Holds::bits)
    CHECK(parameters == expected);
  else
    CHECK(relative_distance(parameters, expected) < (feature.trial == TrialKind::norms ? 1e-3 : 1e-5));
}

void check_refused(const Feature& feature, const StrategyColumn& column) {
  std::string said;
  try {
    tried(feature.trial, options_of(feature, column));
  } catch (const Error& error) {
    said = error.what();
  }
  INFO("'" << said << "'");
  REQUIRE_FALSE(said.empty());
  for (const std::string_view part : feature.refusal) CHECK(said.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("every strategy does with every feature what the table in docs/strategies.md says") {
  for (const Feature& feature : rows_of_features()) {
    REQUIRE(feature.cells.size() == columns_of_strategies().size());
    for (std::size_t i = 0; i < feature.cells.size(); ++i) {
      const StrategyColumn& column = columns_of_strategies()[i];
      INFO(feature.name << ", by " << column.name);
      try {
        if (feature.cells[i] == Holds::refused)
          check_refused(feature, column);
        else
          check_trained(feature, column, feature.cells[i]);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    }
  }
}

TEST_CASE("every strategy resumes every strategy's checkpoints") {
  const Feature& plain = rows_of_features().front();
  const std::vector<float> expected = expected_of(plain, columns_of_strategies().front());
  for (std::size_t first = 0; first < plain.cells.size(); ++first) {
    const SharedFolder folder;
    TrainingOptions saving = saving_in(folder, options_of(plain, columns_of_strategies()[first]));
    saving.checkpoint_every.steps = 6;  // local_sgd: a checkpoint synchronises
    run_until(6, saving, [](TrainingOptions part) { return trained(TrialKind::images, std::move(part)); });
    for (std::size_t then = 0; then < plain.cells.size(); ++then) {
      INFO("saved by " << columns_of_strategies()[first].name << ", resumed by " << columns_of_strategies()[then].name);
      TrainingOptions options = options_of(plain, columns_of_strategies()[then]);
      options.resume_from = checkpoint_path(folder.path, 6);
      const auto training = trained(TrialKind::images, options);
      CHECK_FALSE(training->trainer.strategy().parameter_hash().empty());
      CHECK(training->losses.back() < training->losses.front());
      const bool own = plain.cells[first] == Holds::works || plain.cells[then] == Holds::works;
      if (!own) CHECK(relative_distance(training->parameters(), expected) < 1e-5);
    }
  }
}

}  // namespace conformance_test
