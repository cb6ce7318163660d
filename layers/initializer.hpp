#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include <ronda/core/parameter.hpp>

namespace ronda {

/// Distributions of initial weights. He (Kaiming) keeps the variance of ReLU networks, Glorot (Xavier) that of linear
/// ones; normal ones are not truncated, as in PyTorch. Biases start at zero. A standard normal, N(0, 1), is for the
/// rows of embeddings, which ask for it: no name chooses it for a model's other weights.
enum class Initializer : std::uint8_t {
  he_normal,
  he_uniform,
  glorot_normal,
  glorot_uniform,
  zeros,
  ones,
  standard_normal
};

/// Knows PyTorch's names too (kaiming_normal, xavier_uniform, …). Throws InputError that lists the names.
[[nodiscard]] Initializer parse_initializer(std::string_view name);
[[nodiscard]] std::string_view name_of(Initializer initializer) noexcept;

/// Fills `parameter.value` by seed and name alone: the same for every number of ranks and every layout.
/// @param fan_in, fan_out  inputs and outputs of one weight's neuron; 0 for a bias, which becomes zero
void initialize(const Parameter& parameter, Initializer initializer, std::int64_t fan_in, std::int64_t fan_out,
                std::uint64_t seed);

}  // namespace ronda
