#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

struct GradientCheckOptions {
  float step = 0x1p-7F;        ///< h of the differences; a second step of a quarter detects kinks
  double tolerance = 4e-3;     ///< relative; absolute for gradients below 1. Float32 rounding costs 1e-3
  std::size_t elements = 100;  ///< about how many elements of each tensor are checked, evenly spread
  std::uint64_t seed = 11;
  Primitives* primitives = nullptr;  ///< null: plain loops
  Picker* picker = nullptr;          ///< null: the first candidate
};

/// Numbers of compared elements, and the first wrong one.
struct GradientReport {
  std::size_t tried = 0, smooth = 0, wrong = 0;
  std::string first_wrong;  ///< `input[7]: 0.51 by backward, 0.25 by differences`
};

/// Compares the gradients from a layer's backward with central differences of its output, (f(x + h) − f(x − h)) / 2h,
/// for the input and each parameter; f is a randomly weighted sum of the outputs. Elements are random in [−1, 1], those
/// of a weight in ±√(3 / fan_in). Elements near a kink (ReLU, a maximum) are left out: there the slopes on both sides
/// differ, or the differences of both steps disagree.
/// @param input  with the batch axis: (N, …)
[[nodiscard]] GradientReport compare_gradients(const Layer& layer, const Shape& input,
                                               const GradientCheckOptions& options = {});

/// Calls `compare_gradients`. Throws Error with the first element that differs, or if more than two thirds of the
/// elements were left out near kinks.
void check_gradients(const Layer& layer, const Shape& input, const GradientCheckOptions& options = {});

}  // namespace ronda
