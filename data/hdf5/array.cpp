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

Handle open_dataset(const Handle& file, const std::string& name) {
  constexpr std::size_t slots = 12421, cached_bytes = std::size_t{64} << 20;  // a prime, many times the chunks kept
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access.id(), slots, cached_bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  return {H5Dopen2(file.id(), name.c_str(), access.id()), H5Dclose};
}

}  // namespace

Array::Array(const Handle& file, const std::filesystem::path& path, const std::string& name)
    : source_(path.string() + "[" + name + "]"), dataset_(open_dataset(file, name)) {
  if (dataset_.empty()) throw error("expected a dataset, found none (" + last_error() + ")");
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
