#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ronda {

/// The share of weights that are zero after each step of a training with pruning: from 0 after step `begin` to `share`
/// after step `end`:
///
///     share · (1 - (1 - (step - begin) / (end - begin))³)
///
/// The share changes after each of `parts` equal intervals of steps: fast at first, when many weights are dispensable,
/// and slowly at the end (Zhu and Gupta, "To prune, or not to prune: exploring the efficacy of pruning for model
/// compression", 2017).
class PruningSchedule {
 public:
  static constexpr std::uint64_t parts = 100;

  PruningSchedule() = default;  ///< nothing is pruned
  PruningSchedule(double share, std::uint64_t begin, std::uint64_t end) : share_(share), begin_(begin), end_(end) {}

  /// @param step  from 1, over all epochs; 0: before the first
  [[nodiscard]] double share_after(std::uint64_t step) const noexcept;
  /// Whether weights are to be pruned after `step`: whether the share changes in it.
  [[nodiscard]] bool prunes_after(std::uint64_t step) const noexcept {
    return step > 0 && share_after(step) != share_after(step - 1);
  }

 private:
  double share_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
};

/// Sets the `count` values of smallest magnitude to zero, and the same elements of `average`; among equal magnitudes
/// the first ones. Values that are already zero count: if there are `count` of them, nothing changes.
/// @param average  as long as `values`, or empty
/// @param scratch  at least as long as `values`
void prune(std::span<float> values, std::span<float> average, std::size_t count, std::span<std::int32_t> scratch);

}  // namespace ronda
