#pragma once
#include <ronda/layers/operation_layer.hpp>

namespace ronda {

/// y = x · Wᵀ + b for (N, features); weight (outputs, features) and bias (outputs), as PyTorch's Linear.
class Dense final : public OperationLayer {
 public:
  explicit Dense(std::int64_t outputs, bool bias = true) : outputs_(outputs), bias_(bias) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "dense"; }
  bool absorb(const Layer& next) override;  ///< a ReLU
  /// The weight's columns are stored in the order of the features.
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::read; }

 protected:
  std::unique_ptr<Operation> make(const TensorDesc& input, Primitives& primitives,
                                  const OperationContext& context) override;
  [[nodiscard]] Fans fans(const TensorDesc& input) const override { return {input.shape[1], outputs_}; }

 private:
  std::int64_t outputs_;
  bool bias_;
  Activation activation_ = Activation::none;
};

}  // namespace ronda
