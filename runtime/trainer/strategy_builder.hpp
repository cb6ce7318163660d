#pragma once
#include <memory>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/runtime/strategy/replica/platform.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

/// Arguments for building a strategy; model, loss and sink must outlive it.
struct StrategyParts {
  World& world;
  const Layer& model;
  const Loss& loss;
  const Platform& platform;  ///< with primitives
  const TrainingSetup& setup;
  const Dataset& train;
  std::vector<const Dataset*> device_data;  ///< datasets that a device may keep
  Picks known;                              ///< choices from a checkpoint; the user's plan file takes precedence
};

/// Builds a strategy according to the options, with the stored timings, and stores new ones (see PlanStore).
/// Collective; throws InputError, agreed.
[[nodiscard]] std::unique_ptr<Strategy> build_strategy(const StrategyParts& parts, EventSink& sink);

}  // namespace ronda
