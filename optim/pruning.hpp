#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ronda {

/// What share of the weights is zero after each step of a training that prunes them: from 0 after step `begin` to
/// `share` after step `end`,
///
///     share · (1 - (1 - (step - begin) / (end - begin))³)
///
/// in `parts` equal stretches of steps: fast at first, where there are many weights to spare, and slowly in the end
/// (Zhu and Gupta, "To prune, or not to prune: exploring the efficacy of pruning for model compression", 2017).
class PruningSchedule {
 public:
  static constexpr std::uint64_t parts = 100;

  PruningSchedule() = default;  ///< nothing is pruned
  PruningSchedule(double share, std::uint64_t begin, std::uint64_t end) : share_(share), begin_(begin), end_(end) {}

  /// @param step  from 1, over all epochs; 0: before the first
  [[nodiscard]] double share_after(std::uint64_t step) const noexcept;
  /// Whether weights are to be pruned after `step`, because the share is then another one than before it.
  [[nodiscard]] bool prunes_after(std::uint64_t step) const noexcept {
    return step > 0 && share_after(step) != share_after(step - 1);
  }

 private:
  double share_ = 0;
  std::uint64_t begin_ = 0, end_ = 0;
};

/// Sets the `count` smallest of the values, by magnitude, to zero, and what belongs to them in `average`; of equal ones
/// the first. Those that are zero count. Where as many are zero already, nothing changes.
/// @param average  as many as the values, or none
/// @param scratch  as many as the values, at least
void prune(std::span<float> values, std::span<float> average, std::size_t count, std::span<std::int32_t> scratch);

}  // namespace ronda
