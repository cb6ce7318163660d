#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

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

/// Element types. Layers compute in float32; float64 is for reductions of few exact numbers, int32 for labels, uint8
/// for pixels. All types can be sent and reduced.
enum class DType : std::uint8_t { float32, float64, int32, uint8, float16, bfloat16, int8, int64 };

[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::int8:
    case DType::uint8: return 1;
    case DType::float16:
    case DType::bfloat16: return 2;
    case DType::float32:
    case DType::int32: return 4;
    case DType::float64:
    case DType::int64: return 8;
  }
  return 0;
}

[[nodiscard]] constexpr std::string_view name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::int32: return "int32";
    case DType::uint8: return "uint8";
    case DType::float16: return "float16";
    case DType::bfloat16: return "bfloat16";
    case DType::int8: return "int8";
    case DType::int64: return "int64";
  }
  return "?";
}

template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no DType for this C++ type");
  return DType::uint8;
}();
template <>
inline constexpr DType dtype_of<float> = DType::float32;
template <>
inline constexpr DType dtype_of<double> = DType::float64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::uint8;
template <>
inline constexpr DType dtype_of<Float16> = DType::float16;
template <>
inline constexpr DType dtype_of<BFloat16> = DType::bfloat16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::int8;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;

}  // namespace ronda
