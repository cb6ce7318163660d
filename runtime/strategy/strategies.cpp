#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ronda {
namespace {

std::unique_ptr<Strategy> make_mirrored(StrategyRequest r) {
  return std::make_unique<MirroredStrategy>(std::move(r.communicator), r.model, r.loss, std::move(r.optimizer),
                                            r.schedule, r.options, r.sink);
}

/// The same step; what is divided is the optimizer.
std::unique_ptr<Strategy> make_sharded(StrategyRequest r) {
  r.options.divide_states = true;
  return make_mirrored(std::move(r));
}

constexpr StrategyRow rows[] = {
    {"mirrored", "each rank keeps all of the optimizer's states", true, make_mirrored},
    {"sharded", "each rank keeps the optimizer's states of its part of the parameters alone, and updates that", false,
     make_sharded},
};

}  // namespace

std::span<const StrategyRow> strategy_rows() noexcept { return rows; }

const StrategyRow& strategy_row(std::string_view name) {
  const auto found = std::ranges::find(rows, name, &StrategyRow::name);
  if (found != std::end(rows)) return *found;
  throw InputError("'" + std::string(name) + "' is not a strategy: .strategy is " +
                   listed(
                       strategy_rows(), [](const StrategyRow& row) { return row.name; }, " or "));
}

}  // namespace ronda
