#pragma once
#include <ronda/layers/operation_layer.hpp>

namespace ronda {

/// The same numbers in another type, in plain layout: what brings a batch to layers that compute in a half type.
class Cast final : public OperationLayer {
 public:
  explicit Cast(DType to) : to_(to) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "cast"; }
  [[nodiscard]] FeatureOrder feature_order() const noexcept override { return FeatureOrder::kept; }

 protected:
  std::unique_ptr<Operation> make(const TensorDesc& input, Primitives& primitives,
                                  const OperationContext& context) override {
    return primitives.reorder(input, {input.shape, to_, {}}, context);
  }

 private:
  DType to_;
};

}  // namespace ronda
