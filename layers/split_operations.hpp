#pragma once
#include <memory>

#include <ronda/layers/operation.hpp>
#include <ronda/layers/operation_spec.hpp>

namespace ronda {

/// What an operation adds up over ranks: `none` for all but dense layers and convolutions.
[[nodiscard]] SumOverRanks sums_of(const OperationSpec& operation);

/// One rank's part of an operation, with the sum over the ranks that have the other parts (Pass::parts): of its output
/// behind forward, or of its input's gradient behind backward. In place, whatever the layout, which is one on all.
/// @param input_gradient  whether it is needed
[[nodiscard]] std::unique_ptr<Operation> summed_over_ranks(std::unique_ptr<Operation> part, SumOverRanks sums,
                                                           const TensorDesc& input, bool input_gradient);

/// Of a plain float32 input, on the processor.
[[nodiscard]] std::unique_ptr<Operation> make_part(const PartSpec& spec, const TensorDesc& input);

}  // namespace ronda
