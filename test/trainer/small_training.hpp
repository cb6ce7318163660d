#pragma once
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/layers/layers.hpp>
#include <ronda/runtime/checkpoint/checkpoint_folder.hpp>
#include <ronda/runtime/checkpoint/restore.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"
#include "trainer/saved_training.hpp"

namespace ronda::test {

/// A small training on the ranks' processors, by plain loops.
struct SmallTraining {
  SmallTraining(TrainingOptions options, Sequential m)
      : model(std::move(m)), trainer(world(), model, loss, small(std::move(options))) {
    trainer.set_platform({ComputeDevice::processor(), make_reference_primitives()});
  }
  void fit() { result = trainer.fit(data, data); }
  void fit(const Dataset& test) { result = trainer.fit(data, test); }
  std::string hash() { return trainer.strategy().parameter_hash(); }

  MemoryDataset data = toy_images(90, {9, 7, 1}, 4);
  Sequential model;
  SoftmaxCrossEntropy loss;
  Trainer trainer;
  Evaluation result;
};

/// Convolutions and dense layers, to be cut into parts; with a norm, which sees which samples a rank has, or without.
inline Sequential convolutions_with_norm() {
  return Sequential(Conv2d(8, 3), BatchNorm(), ReLU(), Conv2d(6, 3), ReLU(), Flatten(), Dense(21), ReLU(), Dense(4));
}
inline Sequential convolutions_without_norm() {
  return Sequential(Conv2d(8, 3), ReLU(), Conv2d(6, 3), ReLU(), Flatten(), Dense(21), ReLU(), Dense(4));
}

/// Notes what is reported of epochs.
struct ReportedTraining : SmallTraining {
  explicit ReportedTraining(TrainingOptions options, Sequential m = convolutions_with_norm())
      : SmallTraining(std::move(options), std::move(m)) {
    trainer.add({.epoch = [this](const EpochReport& report) { epochs.push_back(report); }});
  }
  std::vector<EpochReport> epochs;
};

/// Its epochs are those of a whole model, to rounding.
inline void check_epochs(const ReportedTraining& parts, const ReportedTraining& whole) {
  REQUIRE(parts.epochs.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(parts.epochs[i].samples == 90);
    CHECK(std::abs(parts.epochs[i].train_loss - whole.epochs[i].train_loss) < 1e-3);
    CHECK(std::abs(parts.epochs[i].test_loss - whole.epochs[i].test_loss) < 1e-3);
  }
}

/// One of these, or one that builds on it, after fit.
template <class Training>
std::unique_ptr<Training> fitted_training(TrainingOptions options) {
  auto training = std::make_unique<Training>(std::move(options));
  training->fit();
  return training;
}

inline TrainingOptions with_servers(int servers, const std::string& optimizer = "adam") {
  TrainingOptions options;
  options.strategy = ParameterServer{.servers = servers};
  options.optimizer.name = optimizer;
  return options;
}

/// What was told to prune 0.8 of its weights has done about that, alike on all ranks.
inline void check_pruned(SmallTraining& training) {
  CHECK_FALSE(training.hash().empty());
  const auto zeros = training.trainer.strategy().state().zeros();
  CHECK(static_cast<double>(zeros.zeros) > 0.7 * static_cast<double>(zeros.weights));
}

/// A checkpoint, as a strategy of its own reads it.
struct SavedStates {
  explicit SavedStates(std::filesystem::path saved)
      : place(std::move(saved)), manifest(read_manifest(manifest_of(place))) {}

  /// Collective over `ranks`, which have the strategy. Returns its states.
  StateList restore_into(MirroredStrategy& strategy, const Communicator& ranks) const {
    StateList states;
    strategy.visit(states);
    static_cast<void>(restore(place, manifest, states.states(), false, ranks, strategy.device(),
                              strategy.state().divided().pieces()));
    strategy.state().set_updates(manifest.updates);
    return states;
  }

  std::filesystem::path place;
  CheckpointManifest manifest;
};

}  // namespace ronda::test
