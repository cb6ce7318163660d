#pragma once
#include <memory>
#include <span>

#include <ronda/layers/operation.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

// Half-type support on the processor for operations with only float32 loops: inputs are converted to float32 in scratch
// memory, and results are rounded to the half type.

/// The same description with float32 in place of a half type.
[[nodiscard]] TensorDesc widened(const TensorDesc& desc);

/// An operation for half-type inputs, computed by `exact`, which was made for the same inputs in float32. Inputs of
/// other types (labels, tokens) are not converted.
/// @param half  type of its output, parameters and gradients
std::unique_ptr<Operation> widened(std::unique_ptr<Operation> exact, std::span<const TensorDesc> inputs, DType half);

/// A loss of half-type outputs, computed by `exact`, which was made for these outputs in float32.
std::unique_ptr<LossOperation> widened(std::unique_ptr<LossOperation> exact, const TensorDesc& outputs);

}  // namespace ronda
