#pragma once
#include <ronda/core/tensor.hpp>

namespace ronda {

/// An image (N, H, W, C) whose bytes, sample by sample, are in (C, H, W) order, as PyTorch's features are behind a
/// flatten.
[[nodiscard]] inline TensorDesc logical_order_of(const TensorDesc& image) {
  return {image.shape, image.dtype, Layout::parse("adbc")};
}
[[nodiscard]] inline bool in_logical_order(const TensorDesc& image) {
  return same_bytes(image, logical_order_of(image));
}

}  // namespace ronda
