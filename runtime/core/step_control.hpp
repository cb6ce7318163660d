#pragma once
#include <array>
#include <cstddef>

namespace ronda {

/// What all ranks must know of a step beside its gradients. Each rank fills in its own part; the sums over all ranks
/// arrive with the last bucket. Float64 throughout: sums of counts are exact, and one reduction takes them all.
/// A flag counts the ranks that raised it.
struct alignas(64) StepControl {
  double loss = 0;     ///< sum of the weighted losses of this step's samples
  double weight = 0;   ///< sum of their weights
  double correct = 0;  ///< sum of the weights of those the model got right
  double stop = 0;     ///< flag: end in good order after this step
  std::array<double, 4> reserved{};

  static constexpr std::size_t count = 8;  ///< float64 numbers on the wire
};
static_assert(sizeof(StepControl) == StepControl::count * sizeof(double));

}  // namespace ronda
