#pragma once
#include <array>
#include <bit>
#include <cstddef>

namespace ronda {

/// Flags that ranks raise in a step; all ranks see them in the same step. Each counts the ranks that raised it.
struct StepFlags {
  double stop = 0;       ///< end the training cleanly after this step
  double leave = 0;      ///< the same, but save the training, to be resumed later
  double save = 0;       ///< save the training after this step
  double written = 0;    ///< this rank's part of the current checkpoint is on disk
  double unwritten = 0;  ///< this rank's part could not be written
};

/// The data that ranks sum in each step in addition to the gradients. Each rank fills in its part; the sums over all
/// ranks arrive with the last bucket, or from servers before the first. All float64: sums of counts are exact, and one
/// reduction suffices.
struct alignas(64) StepControl {
  double loss = 0;    ///< sum of the weighted losses of this step's samples
  double weight = 0;  ///< sum of their weights
  double metric = 0;  ///< sum of their weighted metrics (see Metric): for accuracy, the weights of the correct samples
  StepFlags flags;
  std::array<double, 8> reserved{};

  static constexpr std::size_t count = 16;  ///< float64 numbers on the wire
};
static_assert(sizeof(StepControl) == StepControl::count * sizeof(double));

/// Adds `more` to `all`.
inline void add(StepControl& all, const StepControl& more) noexcept {
  using Numbers = std::array<double, StepControl::count>;
  auto sums = std::bit_cast<Numbers>(all);
  const auto terms = std::bit_cast<Numbers>(more);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
  all = std::bit_cast<StepControl>(sums);
}

}  // namespace ronda
