#pragma once
#include <cstdint>

#include <ronda/core/host_device.hpp>

namespace ronda {

/// Block length of sums over rows and pixels: each block is summed in float32, and the blocks in float64. The rounding
/// error is then at most that of one block, 15 roundings of 6e-8 of the sum of magnitudes, for any number of terms. One
/// long float32 sum of a million equal numbers is wrong by 1 %.
inline constexpr std::int64_t sum_block = 16;

/// Sums numbers in such blocks, one at a time.
class BlockSum {
 public:
  RONDA_HOST_DEVICE void add(float x) {
    block_ += x;
    if (++count_ % sum_block != 0) return;
    total_ += double{block_};
    block_ = 0;
  }
  [[nodiscard]] RONDA_HOST_DEVICE float value() const { return static_cast<float>(total_ + double{block_}); }

 private:
  double total_ = 0;
  float block_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace ronda
