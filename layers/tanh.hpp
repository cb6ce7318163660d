#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// The hyperbolic tangent, element by element; any shape.
class Tanh final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "tanh"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::tanh}, {x});
  }
};

}  // namespace ronda
