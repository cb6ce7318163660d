#pragma once
#include <cstdint>
#include <vector>

#include <ronda/data/transform.hpp>

namespace ronda {

// Transforms of the field `input`, an image: float32 (height, width, channels). They keep its shape. Each throws
// InputError for parameters that make no sense, and where it meets a field that is no image.

/// A mirror image, left to right, with this probability.
[[nodiscard]] Transform random_flip(double probability = 0.5);

/// Shifted by up to `pixels` in both directions, each shift as likely as the others; what comes in is zero.
[[nodiscard]] Transform random_shift(std::int64_t pixels);

/// What is beyond an image's border.
enum class Border : std::uint8_t {
  zero,
  edge,    ///< the nearest pixel of the image
  reflect  ///< the image's mirror image, the border itself not repeated
};
/// Padded by so many pixels on all sides, and cropped to its size at a random place, each as likely as the others
/// (PyTorch's RandomCrop with `padding`).
/// @param padding  with Border::reflect less than the image's sides, which is looked at when it meets one
[[nodiscard]] Transform random_crop(std::int64_t padding, Border border = Border::zero);

/// A random part of the image, enlarged to its size by bilinear interpolation. The part has a share of the area that is
/// uniform in [least_area, 1], and a ratio of width to height whose logarithm is uniform between those of least_ratio
/// and its reciprocal (PyTorch's RandomResizedCrop: Szegedy et al., "Going deeper with convolutions", CVPR 2015).
/// @param least_area   above 0, at most 1
/// @param least_ratio  likewise
[[nodiscard]] Transform random_resized_crop(double least_area = 0.08, double least_ratio = 0.75);

/// Turned around its centre by an angle uniform in [-degrees, degrees], by bilinear interpolation; beyond the image's
/// border is zero.
/// @param degrees  from 0 to 180
[[nodiscard]] Transform random_rotation(double degrees);

/// A square of `side` pixels around a random pixel becomes zero, as far as it is in the image (DeVries and Taylor,
/// "Improved regularization of convolutional neural networks with cutout", 2017).
[[nodiscard]] Transform cutout(std::int64_t side);

/// (pixel - mean) / deviation, by channel. Applied in evaluations too: wrap the test data in a TransformedDataset with
/// it as well.
/// @param means, deviations  as many as channels; deviations above 0
[[nodiscard]] Transform normalize(std::vector<float> means, std::vector<float> deviations);

}  // namespace ronda
