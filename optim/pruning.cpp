#include <ronda/optim/pruning.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace ronda {
namespace {

/// By integers, whose order is total: NaN is above all numbers.
std::int32_t magnitude_of(float value) { return std::bit_cast<std::int32_t>(value) & 0x7fffffff; }

}  // namespace

double PruningSchedule::share_after(std::uint64_t step) const noexcept {
  if (step >= end_) return share_;
  if (step <= begin_) return 0;
  const double part =
      std::floor(static_cast<double>(parts) * static_cast<double>(step - begin_) / static_cast<double>(end_ - begin_)) /
      static_cast<double>(parts);
  return share_ * (1 - (1 - part) * (1 - part) * (1 - part));
}

void prune(std::span<float> values, std::span<float> average, std::size_t count, std::span<std::int32_t> scratch) {
  count = std::min(count, values.size());
  if (count == 0) return;
  const auto magnitudes = scratch.first(values.size());
  std::ranges::transform(values, magnitudes.begin(), magnitude_of);
  std::ranges::nth_element(magnitudes, magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1));
  const std::int32_t largest = magnitudes[count - 1];
  if (largest == 0) return;
  const auto smaller = std::ranges::count_if(magnitudes.first(count), [&](std::int32_t m) { return m < largest; });
  std::size_t equal = count - static_cast<std::size_t>(smaller);  // of these, as many are set to zero
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int32_t magnitude = magnitude_of(values[i]);
    if (magnitude > largest || (magnitude == largest && equal == 0)) continue;
    if (magnitude == largest) --equal;
    values[i] = 0;
    if (!average.empty()) average[i] = 0;
  }
}

}  // namespace ronda
