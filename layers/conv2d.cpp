#include <ronda/core/error.hpp>
#include <ronda/layers/conv2d.hpp>
#include <ronda/layers/pool2d.hpp>
#include <ronda/layers/relu.hpp>

namespace ronda {

bool Conv2d::absorb(const Layer& next) {
  if (pool_) return false;
  if (const auto* pool = dynamic_cast<const Pool2d*>(&next)) {
    pool_ = pool->spec();
    return true;
  }
  if (activation_ != Activation::none || dynamic_cast<const ReLU*>(&next) == nullptr) return false;
  activation_ = Activation::relu;
  return true;
}

std::unique_ptr<Operation> Conv2d::make(const TensorDesc& input, Primitives& primitives,
                                        const OperationContext& context) {
  if (input.shape.rank() != 4) throw InputError("a convolution takes (N, H, W, C), not " + input.shape.text());
  return primitives.convolution({.input = input,
                                 .outputs = outputs_,
                                 .kernel = kernel_,
                                 .stride = stride_,
                                 .padding = padding_,
                                 .bias = bias_,
                                 .activation = activation_,
                                 .pool = pool_},
                                context);
}

}  // namespace ronda
