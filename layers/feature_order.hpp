#pragma once
#include <ronda/core/tensor.hpp>

namespace ronda {

/// A tensor (N, …) whose bytes, sample by sample, are in the order of features behind a flatten: of an image (N, H, W,
/// C) in (C, H, W) order, as PyTorch's; of all else in the order of its axes.
[[nodiscard]] inline TensorDesc logical_order_of(const TensorDesc& tensor) {
  return {tensor.shape, tensor.dtype, tensor.shape.rank() == 4 ? Layout::parse("adbc") : Layout()};
}
[[nodiscard]] inline bool in_logical_order(const TensorDesc& tensor) {
  return same_bytes(tensor, logical_order_of(tensor));
}

}  // namespace ronda
