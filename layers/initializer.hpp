#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include <ronda/core/state.hpp>

namespace ronda {

/// Distributions of initial weights. He (Kaiming) keeps the variance of ReLU networks, Glorot (Xavier) that of linear
/// ones; normal distributions are not truncated, as in PyTorch. Biases start at zero. `standard_normal`, N(0, 1), is
/// for embeddings, and has no name that a user can choose.
enum class Initializer : std::uint8_t {
  he_normal,
  he_uniform,
  glorot_normal,
  glorot_uniform,
  zeros,
  ones,
  standard_normal
};

/// Accepts PyTorch's names too (kaiming_normal, xavier_uniform, …). Throws InputError that lists the names.
[[nodiscard]] Initializer parse_initializer(std::string_view name);
[[nodiscard]] std::string_view name_of(Initializer initializer) noexcept;

/// Fills `parameter.value`. The values depend only on the seed and the parameter's name, not on the number of ranks or
/// the layout.
/// @param fan_in, fan_out  inputs and outputs of one weight's neuron; 0 for a bias, which becomes zero
void initialize(const Parameter& parameter, Initializer initializer, std::int64_t fan_in, std::int64_t fan_out,
                std::uint64_t seed);

}  // namespace ronda
