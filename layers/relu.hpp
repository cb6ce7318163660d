#pragma once
#include <ronda/layers/operation_layer.hpp>

namespace ronda {

/// max(x, 0), element by element; any shape. Behind a Dense or Conv2d it becomes part of that.
class ReLU final : public OperationLayer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "relu"; }
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::kept; }

 protected:
  std::unique_ptr<Operation> make(const TensorDesc& input, Primitives& primitives,
                                  const OperationContext& context) override {
    return primitives.relu(input, context);
  }
};

}  // namespace ronda
