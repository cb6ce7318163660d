#pragma once
#include <memory>

#include <ronda/layers/operation.hpp>
#include <ronda/layers/operation_spec.hpp>

namespace ronda {

/// The tensor of an operation that is summed over ranks: `none` except for dense layers and convolutions.
[[nodiscard]] SumOverRanks sums_of(const OperationSpec& operation);

/// Wraps one rank's part of an operation, and sums over the ranks that have the other parts (Pass::parts): its output
/// after forward, or its input's gradient after backward. In place; the layout may be any, but is the same on all
/// ranks.
/// @param input_gradient  whether the input's gradient is needed
[[nodiscard]] std::unique_ptr<Operation> summed_over_ranks(std::unique_ptr<Operation> part, SumOverRanks sums,
                                                           const TensorDesc& input, bool input_gradient);

/// Gathers or selects parts of a plain float32 input, on the processor.
[[nodiscard]] std::unique_ptr<Operation> make_part(const PartSpec& spec, const TensorDesc& input);

}  // namespace ronda
