#pragma once
#include <any>
#include <concepts>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ronda/runtime/strategy/step/exchange_plan.hpp>

namespace ronda {

/// The options of one strategy, of any type: `.strategy = Sharded{.one_copy = true}`. A strategy's options have a
/// `name`. If its ranks hold the whole model, `exchange_plan(options)` is declared beside them, and a MirroredStrategy
/// can run it; a program can bring its own, see docs/extending.md.
class StrategyChoice {
 public:
  /// The default strategy: Mirrored.
  StrategyChoice() = default;
  template <class Options>
  requires requires {
    { std::remove_cvref_t<Options>::name } -> std::convertible_to<std::string_view>;
  }
  StrategyChoice(Options&& options)
      : name_(std::remove_cvref_t<Options>::name), options_(std::forward<Options>(options)) {
    using Kept = std::remove_cvref_t<Options>;
    if constexpr (requires(const Kept& kept) { exchange_plan(kept); })
      plan_ = [](const std::any& kept) { return exchange_plan(*std::any_cast<Kept>(&kept)); };
  }

  /// Empty: the default.
  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] bool is_default() const noexcept { return name_.empty(); }
  /// The options of this strategy; null if another one is selected.
  template <class Strategy>
  [[nodiscard]] const Strategy* as() const noexcept {
    return std::any_cast<Strategy>(&options_);
  }
  /// The same; default options if none was selected. Throws InputError if another one was.
  template <class Strategy>
  [[nodiscard]] Strategy or_default() const {
    if (const auto* chosen = as<Strategy>()) return *chosen;
    if (!is_default()) refuse(Strategy::name);
    return {};
  }
  /// Throws InputError if the ranks of this strategy hold parts of the model, or if none was selected.
  [[nodiscard]] std::unique_ptr<ExchangePlan> plan() const;

 private:
  [[noreturn]] void refuse(std::string_view wanted) const;

  std::string_view name_;
  std::any options_;
  std::unique_ptr<ExchangePlan> (*plan_)(const std::any&) = nullptr;
};

}  // namespace ronda
