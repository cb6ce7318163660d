#pragma once
#include <cstdint>

#include <ronda/core/random.hpp>

namespace ronda {

/// A part of an image, in pixels.
struct CropBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
  bool operator==(const CropBox&) const = default;
};

/// How a random part is drawn: see random_resized_crop.
struct CropRange {
  double least_area = 0.08, least_ratio = 0.75;

  /// Throws InputError, in the name of `who`, for numbers that are not above 0 and at most 1.
  void check(const char* who) const;
};

/// The box that the key has for an image of this size. As PyTorch's: of ten draws the first that is within the image,
/// at a place that is as likely as any other; where none is, the largest part in the middle whose ratio is allowed.
[[nodiscard]] CropBox random_box(std::int64_t height, std::int64_t width, const CropRange& range, const RngKey& key);

}  // namespace ronda
