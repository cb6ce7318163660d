#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ronda/core/host_device.hpp>
#include <ronda/layers/arithmetic.hpp>

/// The scalar functions of elementwise layers, shared by processor and GPU.
///
/// Each struct has a name, the function `value(x)`, and its derivative times the output's gradient, `gradient(kept,
/// dy)`, where `kept` is the input if `backward_reads_input`, otherwise the output. NaN gives NaN in both. A function
/// with f(0) ≠ 0 would make the padding of a layout nonzero, so it is applied only to plain layouts (see `keeps_zero`).
namespace ronda {

/// The functions, in the order of elementwise::Functions.
enum class ElementwiseFunction : std::uint8_t { relu, gelu, silu, tanh, sigmoid, mish };

namespace elementwise {

struct Relu {
  static constexpr std::string_view name = "relu";
  static constexpr bool backward_reads_input = false;
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float value(float x) { return rectified(x); }
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gradient(float y, float dy) { return rectified_gradient(y, dy); }
};

/// x · Φ(x), where Φ is the distribution function of standard normal numbers (Hendrycks and Gimpel, "Gaussian error
/// linear units", 2016): computed with the error function, as PyTorch's GELU.
struct Gelu {
  static constexpr std::string_view name = "gelu";
  static constexpr bool backward_reads_input = true;
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float value(float x) { return x * distribution(x); }
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gradient(float x, float dy) {
    const float density = 0.398942280F * std::exp(-0.5F * x * x);  // 1 / √(2π)
    return dy * (distribution(x) + x * density);
  }

 private:
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float distribution(float x) {
    return 0.5F * (1 + std::erf(0.707106781F * x));
  }
};

/// 1 / (1 + e⁻ˣ).
struct Sigmoid {
  static constexpr std::string_view name = "sigmoid";
  static constexpr bool backward_reads_input = false;
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float value(float x) { return 1 / (1 + std::exp(-x)); }
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gradient(float y, float dy) { return dy * y * (1 - y); }
};

/// x · sigmoid(x), also called swish (Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network
/// function approximation in reinforcement learning", Neural Networks 2018).
struct Silu {
  static constexpr std::string_view name = "silu";
  static constexpr bool backward_reads_input = true;
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float value(float x) { return x * Sigmoid::value(x); }
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gradient(float x, float dy) {
    const float sigmoid = Sigmoid::value(x);
    return dy * sigmoid * (1 + x * (1 - sigmoid));
  }
};

struct Tanh {
  static constexpr std::string_view name = "tanh";
  static constexpr bool backward_reads_input = false;
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float value(float x) { return std::tanh(x); }
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gradient(float y, float dy) { return dy * (1 - y * y); }
};

/// x · tanh(log(1 + eˣ)) (Misra, "Mish: a self regularized non-monotonic activation function", BMVC 2020).
struct Mish {
  static constexpr std::string_view name = "mish";
  static constexpr bool backward_reads_input = true;
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float value(float x) { return x * gate(bounded_exponential(x)); }
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gradient(float x, float dy) {
    const float power = bounded_exponential(x), tanh = gate(power), sigmoid = power / (1 + power);
    return dy * (tanh + x * (1 - tanh * tanh) * sigmoid);
  }

 private:
  /// eˣ up to x = 20, from where on the gate is 1 in float32: the square of eˣ is then finite.
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float bounded_exponential(float x) { return std::exp(x < 20 ? x : 20); }
  /// tanh(log(1 + power)), without cancellation.
  [[nodiscard]] RONDA_HOST_DEVICE_INLINE static float gate(float power) {
    const float n = power * (power + 2);
    return n / (n + 2);
  }
};

using Functions = std::tuple<Relu, Gelu, Silu, Tanh, Sigmoid, Mish>;

/// Calls `body(std::type_identity<Row>())` with the struct `Row` of `function`.
template <class Body>
decltype(auto) with_row(ElementwiseFunction function, Body&& body) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    using Result = decltype(body(std::type_identity<std::tuple_element_t<0, Functions>>()));
    Result (*const calls[])(Body&) = {
        [](Body& b) -> Result { return b(std::type_identity<std::tuple_element_t<i, Functions>>()); }...};
    return calls[static_cast<std::size_t>(function)](body);
  }
  (std::make_index_sequence<std::tuple_size_v<Functions>>());
}

/// Whether f(0) = 0, so that zero padding stays zero.
[[nodiscard]] inline bool keeps_zero(ElementwiseFunction function) {
  return with_row(function, []<class Row>(std::type_identity<Row>) { return Row::value(0) == 0; });
}

}  // namespace elementwise
}  // namespace ronda
