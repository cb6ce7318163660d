#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// x · Φ(x), element by element; any shape. As PyTorch's GELU, without approximation.
class GELU final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "gelu"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::gelu}, {x});
  }
};

}  // namespace ronda
