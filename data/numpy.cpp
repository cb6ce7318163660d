#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/detail/conversion.hpp>
#include <ronda/data/detail/mapped_file.hpp>
#include <ronda/data/detail/npy_header.hpp>
#include <ronda/data/detail/zip_file.hpp>
#include <ronda/data/numpy.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace ronda {
namespace {

NumpyArray array_of(Buffer file, std::string source) {
  const NpyHeader header = read_npy_header({file.data(), file.bytes()}, source);
  const std::size_t expected = header.value_bytes(), found = file.bytes() - header.bytes;
  if (expected != found)
    throw InputError(source + ": expected " + std::to_string(expected) + " bytes of data for " +
                     std::string(name_of(header.dtype)) + " " + header.shape.text() + ", found " +
                     std::to_string(found) + "; the file is damaged: save it anew");
  std::byte* const values = file.data() + header.bytes;
  auto keeper = std::make_shared<const Buffer>(std::move(file));
  return {std::move(source), header.shape, header.dtype, Buffer(values, found, Device(), std::move(keeper))};
}

std::vector<NumpyField> two(NumpyArray inputs, NumpyArray targets) {
  std::vector<NumpyField> fields;
  fields.push_back({"input", std::move(inputs), ByteValues::unit});
  fields.push_back({"target", std::move(targets), ByteValues::label});
  return fields;
}

/// @param bytes  of a sample
void read_ahead_of(std::span<const std::uint64_t> samples, const Buffer& values, std::size_t bytes) {
  constexpr std::size_t least = std::size_t{16} << 10;  // the call costs as much as converting some kilobytes
  if (bytes < least) return;
  for (const std::uint64_t sample : samples) read_ahead({values.data() + sample * bytes, bytes});
}

}  // namespace

NumpyArray read_npy(const std::filesystem::path& file) { return array_of(map_file(file), file.string()); }

std::string npy_header(const Shape& shape, DType dtype) {
  const auto type = [&]() -> std::string {
    switch (dtype) {
      case DType::float16: return "<f2";
      case DType::float32: return "<f4";
      case DType::float64: return "<f8";
      case DType::uint8: return "|u1";
      case DType::int8: return "|i1";
      case DType::int32: return "<i4";
      case DType::int64: return "<i8";
      case DType::bfloat16: break;
    }
    throw LogicError("NumPy has no bfloat16");
  };
  std::string text = "{'descr': '" + type() + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : shape) text += std::to_string(extent) + ", ";
  text += "), }";
  constexpr std::size_t before = 10, alignment = 64;  // of the values
  text.append(alignment - (before + text.size() + 1) % alignment, ' ');
  text += '\n';
  const auto length = static_cast<unsigned>(text.size());
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(length & 0xff) + static_cast<char>(length >> 8) + text;
}

NumpyArray read_npz(const std::filesystem::path& file, const std::string& name) {
  return array_of(ZipFile(file).read(name + ".npy"), file.string() + "[" + name + "]");
}

NumpyDataset::NumpyDataset(std::vector<NumpyField> fields) : arrays_(std::move(fields)) {
  for (const NumpyField& field : arrays_) {
    const NumpyArray& array = field.array;
    if (array.shape.rank() == 0 || array.shape[0] == 0 || array.shape.without_batch().count() == 0)
      throw InputError(array.source + ": expected samples along the first axis, found the shape " + array.shape.text());
    if (std::ranges::any_of(fields_, [&](const Field& each) { return each.name == field.name; }))
      throw InputError("a dataset has two fields named '" + field.name + "'");
    const auto samples = static_cast<std::size_t>(array.shape[0]);
    if (fields_.empty()) size_ = samples;
    if (samples != size_)
      throw InputError(array.source + " has " + counted(array.shape[0], "sample") + ", " +
                       arrays_.front().array.source + " has " + std::to_string(size_));
    fields_.push_back({field.name, array.shape.without_batch(), type_in_batch(array.dtype, field.bytes)});
  }
  if (size_ == 0) throw InputError("a dataset needs samples, none were given");
}

NumpyDataset::NumpyDataset(NumpyArray inputs, NumpyArray targets)
    : NumpyDataset(two(std::move(inputs), std::move(targets))) {}

void NumpyDataset::read(const SampleRequest& request, Batch& batch) const {
  for (const NumpyField& field : arrays_) {
    const NumpyArray& array = field.array;
    const Conversion convert(array.dtype, field.bytes);
    const Tensor& rows = batch.field(field.name);
    const std::size_t elements = array.values.bytes() / size_ / size_of(array.dtype);
    read_ahead_of(request.samples, array.values, elements * size_of(array.dtype));
    std::byte* to = rows.data();
    for (const std::uint64_t sample : request.samples) {
      const std::byte* const from = array.values.data() + sample * elements * size_of(array.dtype);
      if (const auto bad = convert(from, to, elements))
        throw InputError(array.source + ", sample " + std::to_string(sample) +
                         ": expected whole numbers of 32 bits, found " + std::to_string(*bad));
      to += elements * size_of(rows.dtype());
    }
  }
}

std::string NumpyDataset::origin(std::uint64_t /*sample*/) const {
  std::string sources;
  for (const NumpyField& field : arrays_) sources += (sources.empty() ? "" : ", ") + field.array.source;
  return sources;
}

std::vector<StoredField> NumpyDataset::stored() const {
  std::vector<StoredField> fields;
  for (const NumpyField& field : arrays_) {
    const auto decode = Conversion(field.array.dtype, field.bytes).decode();
    if (!decode) return {};
    fields.push_back({{field.array.values.data(), field.array.values.bytes()}, *decode});
  }
  return fields;
}

}  // namespace ronda
