#pragma once
#include <ronda/layers/layer.hpp>

namespace ronda {

/// (N, H, W, C) as (N, H·W·C), in PyTorch's (C, H, W) order. No byte is moved before a Dense: that stores its weight's
/// columns in the order of the activation's bytes, and only files show PyTorch's (see Parameter::flattened). A sequence
/// (N, T, C) becomes (N, T·C), in (T, C) order.
class Flatten final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "flatten"; }
  Value build(Value x, GraphBuilder& builder) const override { return builder.apply(FlattenSpec{}, {x}); }
};

}  // namespace ronda
