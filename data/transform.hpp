#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/random.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// One sample in a batch.
class SampleRow {
 public:
  SampleRow(const Batch& batch, std::size_t row, std::span<float> scratch = {})
      : batch_(batch), row_(row), scratch_(scratch) {}
  /// The sample's part of a field, without the batch axis. Throws InputError that lists the names if there is no such
  /// field.
  [[nodiscard]] Tensor field(std::string_view name) const;
  /// Memory for a transform that cannot work in place: as many floats as the largest field has elements, not
  /// initialised.
  [[nodiscard]] std::span<float> scratch() const noexcept { return scratch_; }

 private:
  const Batch& batch_;
  std::size_t row_;
  std::span<float> scratch_;
};

/// Changes one sample in place: a pure function of (sample, key).
struct Transform {
  std::string name;  ///< with parameters, for messages: `random_flip(0.5)`; transforms with equal names must be equal
  std::function<void(const SampleRow& sample, const RngKey& key)> apply;
  bool in_evaluation = false;  ///< also applied in evaluations; must not use its key then
};

/// A dataset that applies transforms, in order, to each sample read in training. The results are the same on any number
/// of ranks, and after a restart. In an evaluation only transforms with Transform::in_evaluation are applied.
class TransformedDataset final : public Dataset {
 public:
  /// @param data  outlives this object
  /// Throws InputError for a transform without a function.
  TransformedDataset(const Dataset& data, std::vector<Transform> transforms);

  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  /// An exception of a transform becomes an InputError with its name, the sample and the epoch.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override { return data_.origin(sample); }
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  struct Step {
    Transform transform;
    std::string stream;  ///< stream of random numbers; different for repeated names
  };

  const Dataset& data_;
  std::vector<Step> steps_;
  mutable std::mutex reading_;
  mutable std::vector<float> scratch_;  ///< scratch memory of the current read
};

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
