#pragma once
#include <string>
#include <utility>
#include <variant>

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

}  // namespace ronda
