#pragma once
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <ronda/core/dtype.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>

namespace ronda {

/// Element types that layers on a GPU store; all layers compute in float32.
template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, Float16> || std::same_as<T, BFloat16>;

template <Number T>
[[nodiscard]] constexpr float as_float(T number) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return number;
  else
    return to_float(number);
}

/// Rounded to nearest, ties to even.
template <Number T>
[[nodiscard]] constexpr T as_number(float value) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return to_half<T>(value);
}

/// Calls body(std::type_identity<T>()) with the Number type T of `dtype`. Throws LogicError for any other type.
template <class Body>
decltype(auto) with_number(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::float32: return body(std::type_identity<float>());
    case DType::float16: return body(std::type_identity<Float16>());
    case DType::bfloat16: return body(std::type_identity<BFloat16>());
    default: throw LogicError("layers do not compute with " + std::string(name_of(dtype)));
  }
}

/// Converts every stored element, padding included, between Number types. Shapes and layouts must be equal; both
/// tensors are in host memory.
void convert(const Tensor& from, const Tensor& to);

/// `count` numbers, widened or rounded.
void convert(const BFloat16* from, float* to, std::size_t count) noexcept;
void convert(const Float16* from, float* to, std::size_t count) noexcept;
void convert(const float* from, BFloat16* to, std::size_t count) noexcept;
void convert(const float* from, Float16* to, std::size_t count) noexcept;

/// The stored elements, padding included, of a tensor of Numbers in host memory.
[[nodiscard]] std::vector<float> floats_of(const Tensor& tensor);

}  // namespace ronda
