#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/core/names.hpp>
#include <ronda/runtime/strategy/step/exchange_plan.hpp>
#include <ronda/runtime/strategy/strategy_options.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace ronda {
namespace {

template <std::size_t... I>
std::optional<AnyStrategy> found_among(std::string_view name, std::vector<std::string>& names,
                                       std::index_sequence<I...> /*all*/) {
  std::optional<AnyStrategy> found;
  const auto look = [&]<class Strategy>(Strategy strategy) {
    names.emplace_back(Strategy::name);
    if (name == Strategy::name) found = std::move(strategy);
  };
  (look(std::variant_alternative_t<I, AnyStrategy>{}), ...);
  return found;
}

}  // namespace

AnyStrategy StrategyOptions::named(std::string_view name) {
  std::vector<std::string> names;
  if (auto found = found_among(name, names, std::make_index_sequence<std::variant_size_v<AnyStrategy>>{}))
    return std::move(*found);
  throw InputError("'" + std::string(name) + "' is not a strategy: " + setting("strategy") + " is " +
                   listed(
                       names, [](const std::string& each) { return each; }, " or ") +
                   did_you_mean(name, names));
}

StrategyOptions::operator StrategyChoice() const {
  return std::visit([](const auto& strategy) { return StrategyChoice(strategy); },
                    static_cast<const AnyStrategy&>(*this));
}

}  // namespace ronda
