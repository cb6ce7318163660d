#pragma once
#include <cstdint>
#include <string_view>

#include <ronda/core/dtype.hpp>

namespace ronda {

/// Arithmetic of layers. Sums are always float32.
enum class Precision : std::uint8_t {
  float32,
  tf32,  ///< factors rounded to 11 bits, by tensor cores of NVIDIA GPUs from Ampere on
  // Activations, parameters and gradients in the half type; softmax and loss in float32, and the optimizer keeps the
  // parameters in float32 (Micikevicius et al., "Mixed precision training", ICLR 2018).
  mixed_bfloat16,
  mixed_float16,  ///< needs a loss scale, as small gradients underflow to 0 and large ones overflow
};

/// Which engines of a GPU's libraries may be used.
struct EngineRules {
  Precision precision = Precision::float32;
  bool deterministic = true;  ///< only engines that sum in the same order in every run
};

/// float32, tf32, mixed_bfloat16 or mixed_float16. Throws InputError that lists the names.
[[nodiscard]] Precision parse_precision(std::string_view name);
[[nodiscard]] std::string_view name_of(Precision precision) noexcept;

/// The type in which half-precision gradients are summed over the ranks: bfloat16 or float32. Throws InputError that
/// lists the names.
[[nodiscard]] DType parse_reduce_dtype(std::string_view name);

/// The type of stored activations, parameters and gradients.
[[nodiscard]] constexpr DType dtype_of_layers(Precision precision) noexcept {
  switch (precision) {
    case Precision::mixed_bfloat16: return DType::bfloat16;
    case Precision::mixed_float16: return DType::float16;
    default: return DType::float32;
  }
}

}  // namespace ronda
