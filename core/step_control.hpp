#pragma once
#include <array>
#include <bit>
#include <cstddef>

namespace ronda {

/// What ranks raise in a step so that all hear of it in the same one. Each counts the ranks that raised it.
struct StepFlags {
  double stop = 0;       ///< end in good order after this step
  double leave = 0;      ///< likewise, but what is not done yet is for another time: save it
  double save = 0;       ///< save the training after this step
  double written = 0;    ///< this rank's part of the checkpoint under way is on disk
  double unwritten = 0;  ///< … could not be written
};

/// What all ranks must know of a step beside its gradients. Each fills in its part; the sums over all ranks arrive with
/// the last bucket, by servers before the first. Float64 throughout: sums of counts are exact, one reduction takes all.
struct alignas(64) StepControl {
  double loss = 0;    ///< sum of the weighted losses of this step's samples
  double weight = 0;  ///< sum of their weights
  double metric = 0;  ///< sum of their weighted metrics (see Metric): for accuracy the weights of those that are right
  StepFlags flags;
  std::array<double, 8> reserved{};

  static constexpr std::size_t count = 16;  ///< float64 numbers on the wire
};
static_assert(sizeof(StepControl) == StepControl::count * sizeof(double));

/// `all` also tells what `more` does.
inline void add(StepControl& all, const StepControl& more) noexcept {
  using Numbers = std::array<double, StepControl::count>;
  auto sums = std::bit_cast<Numbers>(all);
  const auto terms = std::bit_cast<Numbers>(more);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
  all = std::bit_cast<StepControl>(sums);
}

}  // namespace ronda
