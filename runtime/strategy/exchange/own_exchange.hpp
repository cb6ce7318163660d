#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>

namespace ronda {

/// A program's own exchange in a MirroredStrategy; docs/extending.md shows one. The ranks hold the whole model and sum
/// gradients in their own type.
struct OwnExchange {
  static constexpr std::string_view name = "own";

  /// Makes the exchange. `replica` has its arenas, in this rank's memory, and outlives the exchange. Collective.
  std::function<std::unique_ptr<GradientExchange>(const Communicator& communicator, Replica& replica)> make;
};

[[nodiscard]] std::unique_ptr<ExchangePlan> exchange_plan(OwnExchange options);

}  // namespace ronda
