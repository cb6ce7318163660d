#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/byte_values.hpp>
#include <ronda/data/memory_dataset.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace ronda {
namespace {

std::span<const std::byte> bytes_of(const Column& column) {
  return std::visit([](const auto& values) { return std::as_bytes(std::span(values)); }, column.values);
}

DType dtype_of_column(const Column& column) {
  return std::visit([]<class T>(const std::vector<T>&) { return dtype_of<T>; }, column.values);
}

/// Bytes of one sample.
std::size_t row_bytes(const Field& field) {
  return static_cast<std::size_t>(field.shape.count()) * size_of(field.dtype);
}

/// How many samples the column holds.
std::size_t rows_of(const Column& column, const Field& field) {
  const std::size_t row = row_bytes(field), all = bytes_of(column).size();
  if (row == 0 || all % row != 0)
    throw InputError("column '" + field.name + "' has " + std::to_string(all / size_of(field.dtype)) +
                     " values, which make no whole number of samples of shape " + field.shape.text());
  return all / row;
}

}  // namespace

MemoryDataset::MemoryDataset(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const auto& column : columns_) {
    const auto has_its_name = [&](const Field& field) { return field.name == column.name; };
    if (std::any_of(fields_.begin(), fields_.end(), has_its_name))
      throw InputError("a dataset has two columns named '" + column.name + "'");
    fields_.push_back({column.name, column.shape, dtype_of_column(column)});
    const std::size_t rows = rows_of(column, fields_.back());
    if (fields_.size() == 1) size_ = rows;
    if (rows != size_)
      throw InputError("column '" + column.name + "' has " + counted(static_cast<std::int64_t>(rows), "sample") +
                       ", '" + fields_[0].name + "' has " + std::to_string(size_));
  }
  if (size_ == 0) throw InputError("a dataset needs samples, none were given");
}

void MemoryDataset::read(const SampleRequest& request, Batch& batch) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::size_t row = row_bytes(fields_[i]);
    const std::byte* from = bytes_of(columns_[i]).data();
    std::byte* to = batch.field(fields_[i].name).data();
    for (const std::uint64_t sample : request.samples) {
      std::memcpy(to, from + sample * row, row);
      to += row;
    }
  }
}

std::vector<StoredField> MemoryDataset::stored() const {
  std::vector<StoredField> fields;
  for (const auto& column : columns_) fields.push_back({bytes_of(column)});
  return fields;
}

std::vector<Column> MemoryDataset::two(std::vector<float> inputs, const Shape& input_shape, Column target) {
  std::vector<Column> columns;
  columns.push_back({"input", input_shape, std::move(inputs)});
  columns.push_back(std::move(target));
  return columns;
}

namespace {

RONDA_MULTIVERSION void scale_to_unit(const std::uint8_t* __restrict bytes, float* __restrict floats,
                                      std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) floats[i] = unit_of(bytes[i]);
}

/// Samples in random order are far apart in memory: asks for one while another is being converted.
void prefetch(const std::uint8_t* bytes, std::size_t count) {
  constexpr std::size_t cache_line = 64;
  for (std::size_t i = 0; i < count; i += cache_line) __builtin_prefetch(bytes + i);
}

}  // namespace

ByteImages::ByteImages(Buffer pixels, const Shape& image, std::vector<std::uint8_t> labels)
    : pixels_(std::move(pixels)),
      bytes_per_image_(static_cast<std::size_t>(image.count())),
      labels_(std::move(labels)),
      fields_{Field{"input", image, DType::float32}, Field{"target", Shape{}, DType::int32}} {
  if (pixels_.bytes() != labels_.size() * bytes_per_image_)
    throw LogicError(std::to_string(labels_.size()) + " images of " + image.text() + " were given " +
                     std::to_string(pixels_.bytes()) + " bytes");
}

void ByteImages::read(const SampleRequest& request, Batch& batch) const {
  const std::span<const std::uint64_t> samples = request.samples;
  auto* inputs = batch.input().pointer<float>();
  auto* targets = batch.target().pointer<std::int32_t>();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i + 2 < samples.size()) prefetch(image(samples[i + 2]), bytes_per_image_);
    scale_to_unit(image(samples[i]), inputs, bytes_per_image_);
    inputs += bytes_per_image_;
    *targets++ = labels_[samples[i]];
  }
}

std::vector<StoredField> ByteImages::stored() const {
  return {{std::span(pixels_.data(), pixels_.bytes()), Decode::unit},
          {std::as_bytes(std::span(labels_)), Decode::label}};
}

}  // namespace ronda
