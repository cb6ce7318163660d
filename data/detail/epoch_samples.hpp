#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <ronda/data/batch_plan.hpp>

namespace ronda {

/// The samples of an epoch, in its order. Takes four bytes a sample, eight where there are more than 2^32 of them, and
/// none without shuffling: samples of a text can be as short as that.
class EpochSamples {
 public:
  /// @param ahead  keep the next epoch's order too, which `draw_ahead` draws: twice the memory
  explicit EpochSamples(const SampleOrder& order, bool ahead = false);

  /// From 1. Allocates nothing.
  void set_epoch(std::uint64_t epoch);
  /// Draws so many places of the epoch after the one that was set, so that its beginning is not held up. Nothing
  /// where orders are not kept ahead.
  void draw_ahead(std::size_t places);
  /// The sample at `place` of the epoch that was set.
  [[nodiscard]] std::uint64_t operator[](std::size_t place) const noexcept {
    if (!order_.shuffles()) return place;
    return short_.empty() ? long_[place] : short_[place];
  }

 private:
  SampleOrder order_;
  std::uint64_t epoch_ = 0;           ///< whose order is held; 0: nobody's yet
  std::vector<std::uint32_t> short_;  ///< one of the two holds it
  std::vector<std::uint64_t> long_;
  std::vector<std::uint32_t> next_;  ///< the order of the epoch after that, where it is kept
  std::size_t left_;                 ///< places of it that are not drawn yet
};

}  // namespace ronda
