#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// x · sigmoid(x), element by element; any shape. As PyTorch's SiLU.
class SiLU final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "silu"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::silu}, {x});
  }
};

}  // namespace ronda
