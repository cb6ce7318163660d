#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ronda {

/// Element types. Layers compute in float32; float64 serves reductions of few exact numbers, int32 labels, uint8
/// pixels.
enum class DType : std::uint8_t { float32, float64, int32, uint8 };

[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32: return 4;
    case DType::float64: return 8;
    case DType::int32: return 4;
    case DType::uint8: return 1;
  }
  return 0;
}

[[nodiscard]] constexpr std::string_view name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32: return "float32";
    case DType::float64: return "float64";
    case DType::int32: return "int32";
    case DType::uint8: return "uint8";
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

}  // namespace ronda
