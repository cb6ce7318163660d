#pragma once
#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <ronda/runtime/strategy/easgd/easgd.hpp>
#include <ronda/runtime/strategy/local_sgd/local_sgd.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored.hpp>
#include <ronda/runtime/strategy/parameter_server/parameter_server.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline.hpp>
#include <ronda/runtime/strategy/sharded/sharded.hpp>
#include <ronda/runtime/strategy/split/split.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

class StrategyChoice;

using AnyStrategy = std::variant<Mirrored, Sharded, LocalSgd, Easgd, ParameterServer, Pipeline, Split>;

/// A strategy with its options: `.strategy = Sharded{.one_copy = true}`, or by name, with its defaults:
/// `.strategy = "sharded"`.
struct StrategyOptions : AnyStrategy {
  using AnyStrategy::AnyStrategy;
  /// Parses a strategy's name. Throws an InputError that lists the names.
  template <std::convertible_to<std::string_view> Name>
  StrategyOptions(const Name& name) : AnyStrategy(named(name)) {}

  [[nodiscard]] std::string_view name() const noexcept {
    return std::visit([](const auto& strategy) { return strategy.name; }, *this);
  }
  /// True if results depend on the steps after which checkpoints are saved.
  [[nodiscard]] bool saves_change_steps() const noexcept {
    const auto of = []<class Strategy>(const Strategy&) {
      if constexpr (requires { Strategy::saves_change_steps; }) return Strategy::saves_change_steps;
      return false;
    };
    return std::visit(of, *this);
  }
  /// The options of this strategy; null if another one is selected.
  template <class Strategy>
  [[nodiscard]] const Strategy* as() const noexcept {
    return std::get_if<Strategy>(this);
  }
  template <class Strategy>
  [[nodiscard]] Strategy* as() noexcept {
    return std::get_if<Strategy>(this);
  }

  /// The same, for MirroredOptions.
  operator StrategyChoice() const;

 private:
  [[nodiscard]] static AnyStrategy named(std::string_view name);
};

[[nodiscard]] inline std::string_view name_of(const StrategyOptions& strategy) noexcept { return strategy.name(); }

/// The strategy of this name, with default options. Throws an InputError that lists the names.
[[nodiscard]] inline StrategyOptions parse_strategy(std::string_view name) { return name; }

/// Throws InputError for invalid values, and for demands that the strategy cannot meet.
inline void check(const StrategyOptions& options, const Demands& demands) {
  std::visit([&](const auto& strategy) { check(strategy, demands); }, options);
}

/// The options of all strategies, as a command line fills them before one strategy is chosen.
class EveryStrategy {
 public:
  /// Takes the options of `chosen`; the other strategies get defaults.
  explicit EveryStrategy(const StrategyOptions& chosen = {}) {
    std::visit([&](const auto& strategy) { std::get<std::remove_cvref_t<decltype(strategy)>>(all_) = strategy; },
               chosen);
  }
  /// Copies the options of the strategy in `chosen` from here.
  void fill(StrategyOptions& chosen) const {
    std::visit([&](auto& strategy) { strategy = std::get<std::remove_cvref_t<decltype(strategy)>>(all_); }, chosen);
  }
  template <class Strategy>
  [[nodiscard]] Strategy& of() noexcept {
    return std::get<Strategy>(all_);
  }

 private:
  template <class... Strategies>
  static std::tuple<Strategies...> all_of(const std::variant<Strategies...>&);
  decltype(all_of(std::declval<AnyStrategy>())) all_;
};

/// Calls `see(Option, field)`, or `see(Option, field, parse)`, for each field of each strategy.
/// @param chosen  the name of the strategy that is used; options of others are `unread`
template <class Visitor>
void visit(EveryStrategy& every, std::string_view chosen, Visitor&& see) {
  const auto settle_for = [&](std::string_view name, std::string_view owner) {
    return [=](Option option) {
      option.group = "Strategy " + std::string(name);
      option.owner = owner;
      option.matters = option.matters && chosen == name;
      if (chosen != name) option.unread = "for " + setting("strategy", chosen) + ": it is for " + std::string(name);
      return option;
    };
  };
  visit_sharded(every.of<Sharded>(), settle_for(Sharded::name, "Sharded"), see);
  visit_local_sgd(every.of<LocalSgd>(), settle_for(LocalSgd::name, "LocalSgd"), see);
  visit_easgd(every.of<Easgd>(), settle_for(Easgd::name, "Easgd"), see);
  visit_parameter_server(every.of<ParameterServer>(), settle_for(ParameterServer::name, "ParameterServer"), see);
  visit_pipeline(every.of<Pipeline>(), settle_for(Pipeline::name, "Pipeline"), see);
  visit_split(every.of<Split>(), settle_for(Split::name, "Split"), see);
}

}  // namespace ronda
