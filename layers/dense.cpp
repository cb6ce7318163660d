#include <ronda/core/error.hpp>
#include <ronda/layers/dense.hpp>
#include <ronda/layers/relu.hpp>

namespace ronda {

bool Dense::absorb(const Layer& next) {
  if (activation_ != Activation::none || dynamic_cast<const ReLU*>(&next) == nullptr) return false;
  activation_ = Activation::relu;
  return true;
}

std::unique_ptr<Operation> Dense::make(const TensorDesc& input, Primitives& primitives,
                                       const OperationContext& context) {
  if (input.shape.rank() != 2)
    throw InputError("a dense layer takes (N, features), not " + input.shape.text() + "; put a Flatten before it");
  return primitives.dense({.input = input, .outputs = outputs_, .bias = bias_, .activation = activation_}, context);
}

}  // namespace ronda
