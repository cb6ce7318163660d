#pragma once
#include <memory>
#include <string_view>

#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

class ExchangePlan;

/// Each rank stores all parameters and all optimizer states; gradients are averaged in each step.
struct Mirrored {
  static constexpr std::string_view name = "mirrored";
};

inline void check(const Mirrored&, const Demands&) {}

[[nodiscard]] std::unique_ptr<ExchangePlan> exchange_plan(const Mirrored& options);

}  // namespace ronda
