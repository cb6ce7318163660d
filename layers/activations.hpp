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

/// x · Φ(x), element by element; any shape. As PyTorch's GELU, without approximation.
class GELU final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "gelu"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::gelu}, {x});
  }
};

/// x · sigmoid(x), element by element; any shape. As PyTorch's SiLU.
class SiLU final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "silu"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::silu}, {x});
  }
};

/// x · tanh(log(1 + eˣ)), element by element; any shape. As PyTorch's Mish.
class Mish final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "mish"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::mish}, {x});
  }
};

/// 1 / (1 + e⁻ˣ), element by element; any shape.
class Sigmoid final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "sigmoid"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::sigmoid}, {x});
  }
};

/// The hyperbolic tangent, element by element; any shape.
class Tanh final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "tanh"; }
  Value build(Value x, GraphBuilder& builder) const override {
    return builder.apply(ElementwiseSpec{ElementwiseFunction::tanh}, {x});
  }
};

}  // namespace ronda
