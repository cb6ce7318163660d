#pragma once
#include <bit>
#include <cstdint>

namespace ronda {

/// IEEE 754's binary16: 5 bits of exponent, 10 of fraction. Stored and sent; arithmetic is in float32.
struct Float16 {
  std::uint16_t bits = 0;
  bool operator==(const Float16&) const = default;  ///< compares bits
};

/// The upper half of a float32: 8 bits of exponent, 7 of fraction. Stored and sent likewise.
struct BFloat16 {
  std::uint16_t bits = 0;
  bool operator==(const BFloat16&) const = default;  ///< compares bits
};

// The conversions have no branches, so that loops over them are vectorised, and use no denormal float32 numbers, so
// that they are correct inside a DenormalScope too. To 16 bits they round to nearest, ties to even; numbers beyond the
// largest become infinity; NaN becomes a quiet NaN.

[[nodiscard]] constexpr float to_float(BFloat16 value) noexcept {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

[[nodiscard]] constexpr float to_float(Float16 value) noexcept {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16, rest = (value.bits & 0x7fffU) << 13;
  const float normal = std::bit_cast<float>(rest + 0x38000000U);  // exponents differ by 112
  const float subnormal = std::bit_cast<float>(rest + 0x38800000U) - 0x1p-14F;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(rest < 0x00800000U ? subnormal : normal);
  const std::uint32_t special = rest >= 0x0f800000U ? 0x7f800000U : 0U;
  return std::bit_cast<float>(finite | special | sign);
}

template <class Half>
[[nodiscard]] constexpr Half to_half(float value) noexcept;

template <>
[[nodiscard]] constexpr BFloat16 to_half<BFloat16>(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16, nan = bits >> 16 | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded)};
}

template <>
[[nodiscard]] constexpr Float16 to_half<Float16>(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U, rest = bits & 0x7fffffffU;
  const std::uint32_t normal = (rest + 0xc8000fffU + (rest >> 13 & 1U)) >> 13;  // the exponent less 112
  // The last place of 0.5 is that of subnormal binary16 numbers, so the sum is rounded there.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5F) - 0x3f000000U;
  const std::uint32_t beyond = rest > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const std::uint32_t small = rest < 0x38800000U ? subnormal : normal;
  return {static_cast<std::uint16_t>(sign | (rest >= 0x47800000U ? beyond : small))};
}

}  // namespace ronda
