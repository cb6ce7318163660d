#pragma once
#include <span>
#include <string>
#include <vector>

#include <ronda/layers/program.hpp>

namespace ronda {

/// Costs of a model's operations, one per line, with a header line and a line of sums: shape, parameters, FLOPs of a
/// forward pass, bytes kept from forward to backward, microseconds forward and backward, and the picked primitive.
[[nodiscard]] std::vector<std::string> cost_table(std::span<const OperationCosts> costs);

}  // namespace ronda
