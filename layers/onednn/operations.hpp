#pragma once
#include <memory>

#include <ronda/layers/onednn/computation.hpp>
#include <ronda/layers/primitives.hpp>

/// One file an operation. Each asks the picker, direction by direction, and then needs nothing but addresses.
namespace ronda::onednn {

std::unique_ptr<Operation> make_dense(const Runtime&, const DenseProblem&, const OperationContext&);
std::unique_ptr<Operation> make_convolution(const Runtime&, const ConvolutionProblem&, const OperationContext&);
/// Whose spec says int8 (see int8.hpp), by kernels of our own, of plain inputs. Exact in its sums, so it gives what the
/// plain loops give.
std::unique_ptr<Operation> make_int8(const Runtime&, const DenseProblem&);
std::unique_ptr<Operation> make_int8(const Runtime&, const ConvolutionProblem&);
std::unique_ptr<Operation> make_pool(const Runtime&, const TensorDesc& input, const PoolSpec&, const OperationContext&);
std::unique_ptr<Operation> make_relu(const Runtime&, const TensorDesc& input);
std::unique_ptr<Operation> make_elementwise(const Runtime&, const TensorDesc& input, const ElementwiseSpec&);
std::unique_ptr<Operation> make_layer_norm(const Runtime&, const TensorDesc& input, const LayerNormSpec&,
                                           const OperationContext&);
std::unique_ptr<Operation> make_batch_norm(const Runtime&, const TensorDesc& input, const BatchNormSpec&,
                                           const OperationContext&);
std::unique_ptr<Operation> make_dropout(const Runtime&, const TensorDesc& input, const DropoutSpec&,
                                        const OperationContext&);
std::unique_ptr<Operation> make_attention(const Runtime&, const TensorDesc& input, const AttentionSpec&,
                                          const OperationContext&);
std::unique_ptr<Operation> make_add(const Runtime&, std::span<const TensorDesc> inputs, const AddSpec&);
std::unique_ptr<Operation> make_reorder(const Runtime&, const TensorDesc& from, const TensorDesc& to);

}  // namespace ronda::onednn
