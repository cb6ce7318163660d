#pragma once
#include <algorithm>
#include <memory>

#include <ronda/layers/primitives.hpp>
#include <ronda/layers/reference/accessor.hpp>

/// One plain-loop operation each; outputs are in plain layout, inputs in any.
namespace ronda::reference {

std::unique_ptr<Operation> make_dense(const DenseSpec& spec);
std::unique_ptr<Operation> make_convolution(const ConvolutionSpec& spec);
std::unique_ptr<Operation> make_pool(const TensorDesc& input, const PoolSpec& spec);
std::unique_ptr<Operation> make_relu(const TensorDesc& input);
std::unique_ptr<Operation> make_reorder(const TensorDesc& to);
std::unique_ptr<LossOperation> make_softmax_cross_entropy(const TensorDesc& outputs, float smoothing);

}  // namespace ronda::reference
