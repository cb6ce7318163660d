#pragma once
#include <memory>
#include <span>

#include <ronda/layers/operation.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda {

// What has no loops for a half type computes in float32, on the processor: what it is given is widened in scratch
// memory, and what it gives is rounded to the half type.

/// The same in float32 where it is of a half type.
[[nodiscard]] TensorDesc widened(const TensorDesc& desc);

/// An operation for inputs of a half type, by one that was made for the same inputs, widened. Inputs of other types
/// (labels, tokens) stay as they are.
/// @param half  the type of its output, parameters and gradients
std::unique_ptr<Operation> widened(std::unique_ptr<Operation> exact, std::span<const TensorDesc> inputs, DType half);

/// A loss of outputs of a half type, by one that was made for them, widened.
std::unique_ptr<LossOperation> widened(std::unique_ptr<LossOperation> exact, const TensorDesc& outputs);

}  // namespace ronda
