#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include <ronda/core/host_device.hpp>

/// Scalar arithmetic that all backends share, so that they give the same bits.
namespace ronda {

/// max(x, 0), used by every ReLU. NaN stays NaN, so that errors are not hidden.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float rectified(float x) { return x <= 0 ? 0.0F : x; }

/// The gradient of x, where y = rectified(x) (or x itself) and y's gradient is `gradient`. If y is NaN the result is
/// `gradient`, as in PyTorch.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE float rectified_gradient(float y, float gradient) {
  return y <= 0 ? 0.0F : gradient;
}

/// Whether `x` replaces `best` as the maximum: the first of equals wins, and NaN wins over all, as in PyTorch.
[[nodiscard]] RONDA_HOST_DEVICE_INLINE bool beats(float x, float best) { return x > best || x != x; }

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

namespace ronda::int8 {

// Of int8 operations: see int8.hpp.

/// Quantises an input. NaN gives an unspecified byte.
/// @param inverse  1 / the input's scale
[[nodiscard]] inline std::uint8_t byte_of(float x, float inverse, float zero) {
  const float place = x * inverse + zero;
  const float not_below = place > 0 ? place : 0;
  const float above = (not_below < 255 ? not_below : 255) + 0.5F;  // its integer part is the nearest byte
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(above));
}

/// 0 for a finite number, otherwise 1. An integer, so that a row can be tested with vector instructions.
[[nodiscard]] inline std::uint32_t not_finite(float x) {
  constexpr std::uint32_t exponent = 0x7f800000;
  return (std::bit_cast<std::uint32_t>(x) & exponent) == exponent ? 1 : 0;
}

/// The float32 output, before a ReLU.
/// @param scale  scale of the input times scale of the output's weights
[[nodiscard]] inline float restored(std::int32_t sum, float scale, float bias) {
  return static_cast<float>(sum) * scale + bias;
}

/// Indices of the parameters of an int8 operation.
inline constexpr std::size_t weight = 0, weight_scale = 1, input_scale = 2, input_zero = 3, bias = 4;

}  // namespace ronda::int8
