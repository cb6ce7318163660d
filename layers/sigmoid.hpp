#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// 1 / (1 + e⁻ˣ), element by element; any shape.
class Sigmoid final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "sigmoid"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::sigmoid}, {x});
  }
};

}  // namespace ronda
