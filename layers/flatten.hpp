#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// Reshapes (N, H, W, C) to (N, H·W·C), in PyTorch's (C, H, W) order. Before a Dense no data is moved: the Dense stores
/// the columns of its weight in the order of the activation's bytes, and files have them in PyTorch's order (see
/// Parameter::flattened). A sequence (N, T, C) becomes (N, T·C), in (T, C) order.
class Flatten final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "flatten"; }
  Value build(Value x, GraphBuilder& builder) const override { return builder.apply(FlattenSpec{}, {x}); }
};

}  // namespace ronda
