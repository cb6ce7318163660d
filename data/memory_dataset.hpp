#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// One field of all samples: values.size() = samples × shape.count(), sample by sample.
struct Column {
  std::string name;
  Shape shape;  ///< shape of one sample
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int32_t>, std::vector<std::uint8_t>> values;
};

/// Samples in the program's memory.
class MemoryDataset final : public Dataset {
 public:
  /// Throws InputError if the columns have different numbers of samples, no samples, or a repeated name.
  explicit MemoryDataset(std::vector<Column> columns);
  /// Classification: `input` and `target`, one label per sample.
  MemoryDataset(std::vector<float> inputs, Shape input_shape, std::vector<std::int32_t> labels)
      : MemoryDataset(two(std::move(inputs), input_shape, Column{"target", Shape{}, std::move(labels)})) {}
  /// Regression: `input` and `target`.
  MemoryDataset(std::vector<float> inputs, Shape input_shape, std::vector<float> targets, Shape target_shape)
      : MemoryDataset(two(std::move(inputs), input_shape, Column{"target", target_shape, std::move(targets)})) {}

  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t /*sample*/) const override { return origin_; }
  void set_origin(std::string files) { origin_ = std::move(files); }
  [[nodiscard]] std::vector<StoredField> stored() const override;

 private:
  static std::vector<Column> two(std::vector<float> inputs, const Shape& input_shape, Column target);

  std::vector<Column> columns_;
  std::vector<Field> fields_;
  std::size_t size_ = 0;
  std::string origin_;
};

/// Images with class labels, stored in memory as bytes and converted to floats when they are read. `input`: float32
/// (height, width, channels), a byte scaled to 0..1, the float nearest to byte / 255 (as PyTorch's ToTensor). `target`:
/// int32 scalar.
class ByteImages : public Dataset {
 public:
  /// @param pixels  image by image, row by row, with interleaved channels
  /// @param image   height, width and channels of each image
  /// Throws LogicError if the numbers of images and labels differ.
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

  Buffer pixels_;  ///< on large pages: samples are read in random order, and a TLB miss takes longer than the read
  std::size_t bytes_per_image_;
  std::vector<std::uint8_t> labels_;
  std::array<Field, 2> fields_;
  std::string origin_;
};

}  // namespace ronda
