#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

struct GradientCheckOptions {
  float step = 0x1p-7F;        ///< of the differences; another of a quarter tells where the function is smooth
  double tolerance = 4e-3;     ///< of the gradient, or absolute where that is below 1: rounding of float32 costs 1e-3
  std::size_t elements = 100;  ///< about so many of each tensor are looked at, evenly spread
  std::uint64_t seed = 11;
  Primitives* primitives = nullptr;  ///< null: plain loops
  Picker* picker = nullptr;          ///< null: the first candidate of each question
};

/// What was compared.
struct GradientReport {
  std::size_t tried = 0, smooth = 0, wrong = 0;
  std::string first_wrong;  ///< `input[7]: 0.51 by backward, 0.25 by differences`
};

/// Compares what backward says of a layer with central differences of its output, (f(x + h) − f(x − h)) / 2h, for the
/// input and each parameter; f is a sum of the outputs with random weights. Elements are random in [−1, 1], a weight's
/// in ±√(3 / fan_in). An element near a kink (ReLU, a maximum) is left out: the slopes to both sides differ there, or a
/// narrow difference disagrees with a wide one.
/// @param input  with the batch: (N, …)
[[nodiscard]] GradientReport compare_gradients(const Layer& layer, const Shape& input,
                                               const GradientCheckOptions& options = {});

/// The same. Throws Error with the first element that differs, and where so many lie near kinks that little was
/// compared: less than a third.
void check_gradients(const Layer& layer, const Shape& input, const GradientCheckOptions& options = {});

}  // namespace ronda
