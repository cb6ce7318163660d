#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// Images with a class each, in memory as bytes: they become floats when they are read.
/// `input`: float32 (height, width, channels), a byte scaled to 0..1, the float nearest to byte / 255 (as PyTorch's
/// ToTensor). `target`: int32 scalar.
class ByteImages : public Dataset {
 public:
  /// @param pixels  image after image, each row after row, a pixel's channels side by side
  /// @param image   height, width and channels of each
  /// Throws LogicError where there are not as many images as labels.
  ByteImages(Buffer pixels, const Shape& image, std::vector<std::uint8_t> labels);

  [[nodiscard]] std::size_t size() const override { return labels_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t /*sample*/) const override { return origin_; }
  void set_origin(std::string files) { origin_ = std::move(files); }
  [[nodiscard]] std::vector<StoredField> stored() const override;

 private:
  [[nodiscard]] const std::uint8_t* image(std::uint64_t sample) const {
    return reinterpret_cast<const std::uint8_t*>(pixels_.data()) + sample * bytes_per_image_;
  }

  Buffer pixels_;  ///< in large pages: every sample is on another, and a page is looked up more slowly than read
  std::size_t bytes_per_image_;
  std::vector<std::uint8_t> labels_;
  std::array<Field, 2> fields_;
  std::string origin_;
};

}  // namespace ronda
