#pragma once
#include <ronda/core/tensor.hpp>

/// Layouts of activations that are the same bytes in another shape: flattened features, and sequences as images.
namespace ronda {

/// The description of `tensor` with the bytes of each sample in the order of flattened features: images (N, H, W, C) in
/// (C, H, W) order, as in PyTorch; all others in the order of their axes.
[[nodiscard]] inline TensorDesc logical_order_of(const TensorDesc& tensor) {
  return {tensor.shape, tensor.dtype, tensor.shape.rank() == 4 ? Layout::parse("adbc") : Layout()};
}
[[nodiscard]] inline bool in_logical_order(const TensorDesc& tensor) {
  return same_bytes(tensor, logical_order_of(tensor));
}

// Convolutions and poolings treat a sequence (N, T, C) as an image of one row, (N, 1, T, C), with the same bytes and
// layout, so that the same code serves both.

[[nodiscard]] inline bool is_sequence(const Shape& shape) noexcept { return shape.rank() == 3; }

/// The image of a sequence; an image is returned unchanged.
[[nodiscard]] inline Shape image_of(const Shape& shape) {
  return is_sequence(shape) ? Shape{shape[0], 1, shape[1], shape[2]} : shape;
}
[[nodiscard]] inline TensorDesc image_of(const TensorDesc& tensor) {
  return is_sequence(tensor.shape) ? TensorDesc{image_of(tensor.shape), tensor.dtype, tensor.layout.with_step(1)}
                                   : tensor;
}

/// The inverse: the sequence of an image of one row.
[[nodiscard]] inline TensorDesc sequence_of(const TensorDesc& image) {
  return {{image.shape[0], image.shape[2], image.shape[3]}, image.dtype, image.layout.without_step(1)};
}

/// Converts the weight of a convolution of images, (outputs, C / groups, 1, kernel), to that of sequences, (outputs, C
/// / groups, kernel).
[[nodiscard]] inline TensorDesc weight_of_sequences(const TensorDesc& weight) {
  return {{weight.shape[0], weight.shape[1], weight.shape[3]}, weight.dtype, weight.layout.without_step(2)};
}

}  // namespace ronda
