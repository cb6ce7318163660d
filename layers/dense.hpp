#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// y = x · Wᵀ + b for (N, features); weight (outputs, features) and bias (outputs), as PyTorch's Linear.
class Dense final : public Layer {
 public:
  explicit Dense(std::int64_t outputs, bool bias = true) : spec_{.outputs = outputs, .bias = bias} {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "dense"; }
  Value build(Value x, GraphBuilder& builder) const override;

 private:
  DenseSpec spec_;
};

}  // namespace ronda
