#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

/// Scalar arithmetic shared by all loops of int8 operations, so that they give the same bits: see int8.hpp.
namespace ronda::int8 {

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
