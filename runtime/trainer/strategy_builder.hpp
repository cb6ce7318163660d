#pragma once
#include <memory>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/runtime/strategy/platform.hpp>
#include <ronda/runtime/strategy/strategy.hpp>
#include <ronda/runtime/trainer/training_setup.hpp>

namespace ronda {

/// What a strategy is built for; model, loss and sink outlive it.
struct StrategyParts {
  World& world;
  const Layer& model;
  const Loss& loss;
  const Platform& platform;  ///< with its primitives
  const TrainingSetup& setup;
  const Dataset& train;
  std::vector<const Dataset*> device_data;  ///< that a device may keep
  Picks known;                              ///< that a checkpoint brings; the user's own plan file comes before it
};

/// Plans a strategy as the options say, with what was timed before, and keeps what is timed now (see PlanStore).
/// Collective; throws InputError, agreed.
[[nodiscard]] std::unique_ptr<Strategy> build_strategy(const StrategyParts& parts, EventSink& sink);

}  // namespace ronda
