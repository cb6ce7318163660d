#pragma once
#include <ronda/core/tensor.hpp>

namespace ronda {

/// The description of `tensor` with the bytes of each sample in the order of flattened features: images (N, H, W, C) in
/// (C, H, W) order, as in PyTorch; all others in the order of their axes.
[[nodiscard]] inline TensorDesc logical_order_of(const TensorDesc& tensor) {
  return {tensor.shape, tensor.dtype, tensor.shape.rank() == 4 ? Layout::parse("adbc") : Layout()};
}
[[nodiscard]] inline bool in_logical_order(const TensorDesc& tensor) {
  return same_bytes(tensor, logical_order_of(tensor));
}

}  // namespace ronda
