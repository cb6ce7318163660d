#include <ronda/data/hdf5/array.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace ronda::hdf5 {
namespace {

using Extents = std::array<hsize_t, Shape::capacity>;

/// The type in memory; HDF5 turns the file's byte order into the processor's.
hid_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return H5T_NATIVE_FLOAT;
    case DType::float64: return H5T_NATIVE_DOUBLE;
    case DType::uint8: return H5T_NATIVE_UINT8;
    case DType::int8: return H5T_NATIVE_INT8;
    case DType::int32: return H5T_NATIVE_INT32;
    case DType::int64: return H5T_NATIVE_INT64;
    default: throw LogicError("HDF5 was to read numbers of an unknown type");
  }
}

Handle open_dataset(const Handle& file, const std::string& name, const std::string& source) {
  constexpr std::size_t slots = 12421, cached_bytes = std::size_t{64} << 20;  // a prime, many times the chunks kept
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access.id(), slots, cached_bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  Handle dataset(H5Dopen2(file.id(), name.c_str(), access.id()), H5Dclose);
  if (dataset.empty())  // asked before `access` is closed, which would forget the error
    throw InputError(source + ": expected a dataset, found none (" + last_error() + ")");
  return dataset;
}

/// Bytes of a chunk. 0 for an array without chunks; the largest number where the product overflows.
std::uint64_t chunk_bytes(const Handle& creation, std::uint64_t number) {
  Extents extents{};
  const int axes = H5Pget_chunk(creation.id(), Shape::capacity, extents.data());
  std::uint64_t bytes = axes > 0 ? number : 0;
  for (int i = 0; i < std::min(axes, Shape::capacity); ++i)
    if (__builtin_mul_overflow(bytes, extents[static_cast<std::size_t>(i)], &bytes)) return UINT64_MAX;
  return bytes;
}

/// The most bytes of an array that one byte of the file can give: 1032 by deflate. By other filters as by Zstandard,
/// where 4 bytes repeat one 131,072 times (RFC 8878).
std::uint64_t most_of_a_byte(const Handle& creation) {
  constexpr std::array usual{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32};
  for (int i = 0; i < H5Pget_nfilters(creation.id()); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(creation.id(), static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, &config);
    if (std::ranges::find(usual, filter) == usual.end()) return 32768;
  }
  return 1032;
}

}  // namespace

Array::Array(const Handle& file, const std::filesystem::path& path, const std::string& name)
    : source_(path.string() + "[" + name + "]"), dataset_(open_dataset(file, name, source_)) {
  places_ = Handle(H5Dget_space(dataset_.id()), H5Sclose);
  read_shape();
  read_type();
  Extents extents{};
  std::ranges::copy(shape_, extents.begin());
  extents[0] = 1;
  one_ = Handle(H5Screate_simple(shape_.rank(), extents.data(), nullptr), H5Sclose);
  if (one_.empty()) throw error("its shape " + shape_.text() + " cannot be read (" + last_error() + ")");
}

void Array::read_shape() {
  const int rank = H5Sget_simple_extent_ndims(places_.id());
  if (rank < 1 || rank > Shape::capacity)
    throw error("expected from 1 to " + std::to_string(Shape::capacity) + " axes, found " + std::to_string(rank));
  Extents extents{};
  H5Sget_simple_extent_dims(places_.id(), extents.data(), nullptr);
  std::array<std::int64_t, Shape::capacity> signed_extents{};
  std::int64_t product = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(rank); ++i) {
    signed_extents[i] = static_cast<std::int64_t>(std::min<hsize_t>(extents[i], Shape::most_elements));
    if (__builtin_mul_overflow(product, signed_extents[i], &product) || product > Shape::most_elements)
      throw error("its shape promises more values than can be");
  }
  shape_ = Shape(std::span(signed_extents).first(static_cast<std::size_t>(rank)));
  if (product == 0) throw error("expected samples along the first axis, found the shape " + shape_.text());
}

void Array::read_type() {
  const Handle type(H5Dget_type(dataset_.id()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  const std::size_t bytes = H5Tget_size(type.id());
  const bool is_signed = kind == H5T_INTEGER && H5Tget_sign(type.id()) == H5T_SGN_2;
  if (kind == H5T_FLOAT && (bytes == 4 || bytes == 8))
    dtype_ = bytes == 4 ? DType::float32 : DType::float64;
  else if (kind == H5T_INTEGER && bytes == 1)
    dtype_ = is_signed ? DType::int8 : DType::uint8;
  else if (is_signed && (bytes == 4 || bytes == 8))
    dtype_ = bytes == 4 ? DType::int32 : DType::int64;
  else
    throw error("expected numbers of float32, float64, uint8, int8, int32 or int64, found others, of " +
                std::to_string(bytes) + " bytes");
}

void Array::require_possible(std::uint64_t file_bytes) const {
  const Handle creation(H5Dget_create_plist(dataset_.id()), H5Pclose), type(H5Dget_type(dataset_.id()), H5Tclose);
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.id()) > 0) return;  // other files hold it
  const std::uint64_t number = H5Tget_size(type.id());
  const std::uint64_t bytes = static_cast<std::uint64_t>(shape_.count()) * number;
  const std::uint64_t stored = H5Dget_storage_size(dataset_.id());
  const bool unwritten = layout == H5D_CONTIGUOUS && stored == 0;
  if (layout != H5D_CHUNKED && !unwritten && stored != bytes)
    throw error("expected " + std::to_string(bytes) + " bytes for its shape " + shape_.text() + ", found " +
                std::to_string(stored) + "; the file is damaged");
  if (std::max(bytes, chunk_bytes(creation, number)) / most_of_a_byte(creation) > file_bytes)
    throw error("its shape " + shape_.text() + " or its chunks promise more values than a file of " +
                std::to_string(file_bytes) + " bytes can hold; the file is damaged");
}

void Array::read(std::uint64_t sample, std::byte* values) const {
  Extents start{}, count{};
  std::ranges::copy(shape_, count.begin());
  start[0] = sample;
  count[0] = 1;
  if (H5Sselect_hyperslab(places_.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0 ||
      H5Dread(dataset_.id(), type_of(dtype_), one_.id(), places_.id(), H5P_DEFAULT, values) < 0)
    throw error("sample " + std::to_string(sample) + " cannot be read (" + last_error() +
                "); the file is damaged, or needs a filter that this machine lacks");
}

}  // namespace ronda::hdf5
