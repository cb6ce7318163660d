#pragma once
#include <cstddef>
#include <string_view>
#include <tuple>

#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/layer.hpp>

namespace ronda {

/// A function of each element; any shape.
template <ElementwiseFunction Function>
class ElementwiseLayer : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override {
    return std::tuple_element_t<static_cast<std::size_t>(Function), elementwise::Functions>::name;
  }
  Value build(Value x, GraphBuilder& builder) const override { return builder.apply(ElementwiseSpec{Function}, {x}); }
};

/// max(x, 0). After a Dense, a Conv2d or a sum it is fused into that operation.
class ReLU final : public ElementwiseLayer<ElementwiseFunction::relu> {};

/// x · Φ(x). As PyTorch's GELU, without approximation.
class GELU final : public ElementwiseLayer<ElementwiseFunction::gelu> {};

/// x · sigmoid(x). As PyTorch's SiLU.
class SiLU final : public ElementwiseLayer<ElementwiseFunction::silu> {};

/// x · tanh(log(1 + eˣ)). As PyTorch's Mish.
class Mish final : public ElementwiseLayer<ElementwiseFunction::mish> {};

/// 1 / (1 + e⁻ˣ).
class Sigmoid final : public ElementwiseLayer<ElementwiseFunction::sigmoid> {};

/// The hyperbolic tangent.
class Tanh final : public ElementwiseLayer<ElementwiseFunction::tanh> {};

}  // namespace ronda
