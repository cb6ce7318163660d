#pragma once
#include <algorithm>
#include <memory>
#include <span>

#include <ronda/layers/primitives.hpp>
#include <ronda/layers/reference/accessor.hpp>

/// One plain-loop operation each; outputs are in plain layout, inputs in any.
namespace ronda::reference {

std::unique_ptr<Operation> make_dense(const DenseProblem& spec, const OperationContext& context);
std::unique_ptr<Operation> make_convolution(const ConvolutionProblem& spec, const OperationContext& context);
/// Whose spec says int8: see int8.hpp.
std::unique_ptr<Operation> make_int8(const DenseProblem& spec);
std::unique_ptr<Operation> make_int8(const ConvolutionProblem& spec);
std::unique_ptr<Operation> make_pool(const TensorDesc& input, const PoolSpec& spec);
/// Element by element in the order of the bytes: the output has the input's layout.
std::unique_ptr<Operation> make_elementwise(const TensorDesc& input, const ElementwiseSpec& spec);
/// In the input's layout.
std::unique_ptr<Operation> make_batch_norm(const TensorDesc& input, const BatchNormSpec& spec, Mode mode);
/// In the input's layout; `name` as in OperationContext.
std::unique_ptr<Operation> make_dropout(const TensorDesc& input, const DropoutSpec& spec, std::string_view name);
/// Rows of plain inputs.
std::unique_ptr<Operation> make_layer_norm(const TensorDesc& input, const LayerNormSpec& spec);
/// Element by element, of inputs with one layout.
std::unique_ptr<Operation> make_add(std::span<const TensorDesc> inputs, const AddSpec& spec);
/// Of any type; plain inputs.
std::unique_ptr<Operation> make_concat(std::span<const TensorDesc> inputs, const ConcatSpec& spec);
/// Plain tokens.
std::unique_ptr<Operation> make_embedding(const TensorDesc& tokens, const EmbeddingSpec& spec);
/// Plain.
std::unique_ptr<Operation> make_position(const TensorDesc& input, const PositionSpec& spec);
/// Plain. Scores are kept from forward to backward; `name` as in OperationContext.
std::unique_ptr<Operation> make_attention(const TensorDesc& input, const AttentionSpec& spec, std::string_view name);
std::unique_ptr<Operation> make_reorder(const TensorDesc& to);
std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, const CrossEntropySpec& spec);

}  // namespace ronda::reference
