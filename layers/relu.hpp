#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// max(x, 0), element by element; any shape. After a Dense, a Conv2d or a sum it is fused into that operation.
class ReLU final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "relu"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::relu}, {x});
  }
};

}  // namespace ronda
