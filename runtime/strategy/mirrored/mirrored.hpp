#pragma once
#include <string_view>

#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

/// Each rank stores all parameters and all optimizer states; gradients are averaged in each step.
struct Mirrored {
  static constexpr std::string_view name = "mirrored";
};

inline void check(const Mirrored&, const Demands&) {}

}  // namespace ronda
