#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <ronda/core/half.hpp>

namespace ronda {

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
