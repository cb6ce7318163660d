#pragma once
#include <ronda/core/tensor.hpp>

/// A sequence (N, T, C) is an image of one row, (N, 1, T, C), to everything that moves windows over images: the same
/// bytes in the same layout, so that convolutions and poolings of images are those of sequences too.
namespace ronda {

[[nodiscard]] inline bool is_sequence(const Shape& shape) noexcept { return shape.rank() == 3; }

/// Of an image itself.
[[nodiscard]] inline Shape image_of(const Shape& shape) {
  return is_sequence(shape) ? Shape{shape[0], 1, shape[1], shape[2]} : shape;
}
[[nodiscard]] inline TensorDesc image_of(const TensorDesc& tensor) {
  return is_sequence(tensor.shape) ? TensorDesc{image_of(tensor.shape), tensor.dtype, tensor.layout.with_step(1)}
                                   : tensor;
}

/// The inverse, of an image of one row.
[[nodiscard]] inline TensorDesc sequence_of(const TensorDesc& image) {
  return {{image.shape[0], image.shape[2], image.shape[3]}, image.dtype, image.layout.without_step(1)};
}

/// The weight of a convolution of sequences, (outputs, C / groups, kernel), of that of their images, (outputs,
/// C / groups, 1, kernel).
[[nodiscard]] inline TensorDesc weight_of_sequences(const TensorDesc& weight) {
  return {{weight.shape[0], weight.shape[1], weight.shape[3]}, weight.dtype, weight.layout.without_step(2)};
}

}  // namespace ronda
