#pragma once
#include <cstdint>
#include <vector>

#include <ronda/data/transform.hpp>

namespace ronda {

// Transforms of the field `input`, an image: float32 (height, width, channels). They keep its shape. Each throws
// InputError for invalid parameters, and when it is applied to a field that is not an image.

/// Mirrors the image left to right with this probability.
[[nodiscard]] Transform random_flip(double probability = 0.5);

/// Shifts the image by up to `pixels` in both directions, uniformly; new pixels are zero.
[[nodiscard]] Transform random_shift(std::int64_t pixels);

/// The pixels outside of an image.
enum class Border : std::uint8_t {
  zero,
  edge,    ///< the nearest pixel of the image
  reflect  ///< the mirrored image, without repeating the border pixels
};
/// Pads the image by `padding` pixels on all sides, and crops it to its size at a uniformly random position (PyTorch's
/// RandomCrop with `padding`).
/// @param padding  with Border::reflect less than the image's sides, which is checked when it is applied
[[nodiscard]] Transform random_crop(std::int64_t padding, Border border = Border::zero);

/// Takes a random part of the image, enlarged to the image's size by bilinear interpolation. The part's share of the
/// area is uniform in [least_area, 1]; the logarithm of its ratio of width to height is uniform between those of
/// least_ratio and its reciprocal (PyTorch's RandomResizedCrop: Szegedy et al., "Going deeper with convolutions", CVPR
/// 2015).
/// @param least_area   above 0, at most 1
/// @param least_ratio  above 0, at most 1
[[nodiscard]] Transform random_resized_crop(double least_area = 0.08, double least_ratio = 0.75);

/// Rotates the image around its centre by an angle uniform in [-degrees, degrees], with bilinear interpolation; pixels
/// from outside the image are zero.
/// @param degrees  from 0 to 180
[[nodiscard]] Transform random_rotation(double degrees);

/// Sets a square of `side` pixels around a random pixel to zero, clipped to the image (DeVries and Taylor, "Improved
/// regularization of convolutional neural networks with cutout", 2017).
[[nodiscard]] Transform cutout(std::int64_t side);

/// (pixel - mean) / deviation, per channel. Also applied in evaluations: wrap the test data in a TransformedDataset
/// with it too.
/// @param means, deviations  one per channel; deviations above 0
[[nodiscard]] Transform normalize(std::vector<float> means, std::vector<float> deviations);

}  // namespace ronda
