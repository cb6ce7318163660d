#pragma once
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/program.hpp>

namespace ronda {

/// What a model's operations cost, a line each under a line of titles, and their sums: shape, parameters, FLOPs of a
/// forward pass, bytes kept from forward to backward, microseconds forward and backward, and what was picked.
[[nodiscard]] std::vector<std::string> cost_table(std::span<const OperationCosts> costs);

}  // namespace ronda
