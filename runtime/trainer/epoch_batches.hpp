#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace ronda {

/// The batches of an epoch that its steps have taken. Asynchronous workers finish their batches out of order, so steps
/// may skip a batch for some time. Batches that no step has taken yet are numbered in ascending order, the skipped ones
/// first:
///
///     batch     0      1        2      3        4      5   6  …
///               taken  skipped  taken  skipped  taken
///     number           3               4               5   6  …      3 steps are done
class EpochBatches {
 public:
  EpochBatches() = default;
  /// @param taken    steps done
  /// @param skipped  see `skipped`
  EpochBatches(std::uint64_t taken, std::vector<std::uint64_t> skipped)
      : skipped_(std::move(skipped)), end_(taken + skipped_.size()) {}

  [[nodiscard]] std::uint64_t taken() const noexcept { return end_ - skipped_.size(); }
  /// Batches that no step has taken, although a step has taken a later one; ascending.
  [[nodiscard]] const std::vector<std::uint64_t>& skipped() const noexcept { return skipped_; }
  /// The batch with this number, `taken()` or more.
  [[nodiscard]] std::uint64_t batch(std::uint64_t number) const {
    const std::uint64_t ahead = number - taken();
    return ahead < skipped_.size() ? skipped_[ahead] : end_ + (ahead - skipped_.size());
  }
  /// Notes that a step has taken this batch, which no step has taken before.
  void take(std::uint64_t batch) {
    if (batch < end_) {
      skipped_.erase(std::ranges::lower_bound(skipped_, batch));
      return;
    }
    for (; end_ < batch; ++end_) skipped_.push_back(end_);
    ++end_;
  }

 private:
  std::vector<std::uint64_t> skipped_;
  std::uint64_t end_ = 0;  ///< one after the last batch that was taken
};

}  // namespace ronda
