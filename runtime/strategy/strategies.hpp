#pragma once
#include <memory>
#include <span>
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>
#include <ronda/runtime/strategy/strategy_options.hpp>

namespace ronda {

/// Arguments for making a strategy; model, loss and sink as in MirroredStrategy's constructor.
struct StrategyRequest {
  Communicator communicator;
  const Layer& model;
  const Loss& loss;
  std::unique_ptr<Optimizer> optimizer;
  Schedule schedule;
  MirroredOptions options;
  EventSink* sink = nullptr;
};

/// A strategy and its name.
struct StrategyRow {
  std::string_view name;
  std::string_view help;  ///< the parts that a rank keeps and updates, as a phrase
  /// Collective; throws as MirroredStrategy's constructor does.
  std::unique_ptr<Strategy> (*make)(StrategyRequest request);
};

/// All strategies; the first is the default.
[[nodiscard]] std::span<const StrategyRow> strategy_rows() noexcept;
/// Makes the strategy that `request.options.strategy` names. Collective; throws as MirroredStrategy's constructor does.
[[nodiscard]] std::unique_ptr<Strategy> make_strategy(StrategyRequest request);

/// This rank's part of the data of a step (`of_step`) or of a test, by any strategy. Not collective. Throws as Roles,
/// Pipeline::shard and Split::shard do.
[[nodiscard]] Shard shard_of(const Communicator& communicator, const StrategyOptions& strategy, bool of_step);

}  // namespace ronda
