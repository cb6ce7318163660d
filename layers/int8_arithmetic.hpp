#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

/// What all loops of int8 operations compute of one number, so that they give the same bits: see int8.hpp.
namespace ronda::int8 {

/// The byte of an input; of NaN some byte.
/// @param inverse  1 / the input's scale
[[nodiscard]] inline std::uint8_t byte_of(float x, float inverse, float zero) {
  const float place = x * inverse + zero;
  const float not_below = place > 0 ? place : 0;
  const float above = (not_below < 255 ? not_below : 255) + 0.5F;  // its whole part is the nearest byte
  return static_cast<std::uint8_t>(static_cast<std::int32_t>(above));
}

/// 0 for a finite number; as an integer, since that can be gathered over a row in a vector.
[[nodiscard]] inline std::uint32_t not_finite(float x) {
  constexpr std::uint32_t exponent = 0x7f800000;
  return (std::bit_cast<std::uint32_t>(x) & exponent) == exponent ? 1 : 0;
}

/// An output before the ReLU.
/// @param scale  of the input, times that of the output's weights
[[nodiscard]] inline float restored(std::int32_t sum, float scale, float bias) {
  return static_cast<float>(sum) * scale + bias;
}

/// Where the parameters of an operation stand.
inline constexpr std::size_t weight = 0, weight_scale = 1, input_scale = 2, input_zero = 3, bias = 4;

}  // namespace ronda::int8
