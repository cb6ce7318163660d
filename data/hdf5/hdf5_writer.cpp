#include <ronda/core/error.hpp>
#include <ronda/data/hdf5.hpp>
#include <ronda/data/hdf5/handle.hpp>

#include <vector>

namespace ronda {
namespace {

hid_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32: return H5T_IEEE_F32LE;
    case DType::uint8: return H5T_STD_U8LE;
    case DType::int32: return H5T_STD_I32LE;
    default: throw LogicError("HDF5 arrays are written of float32, uint8 and int32");
  }
}

}  // namespace

struct Hdf5Writer::Impl {
  struct Array {
    hdf5::Handle dataset, places;
    std::vector<hsize_t> next, count;  ///< place and size of what is written next
    std::size_t sample_bytes;
    hid_t type;
  };

  std::filesystem::path path;
  hdf5::Handle file;
  std::vector<Array> arrays;
};

Hdf5Writer::Hdf5Writer(const std::filesystem::path& file, const std::vector<Hdf5Array>& arrays)
    : impl_(std::make_unique<Impl>()) {
  const auto lock = hdf5::lock();
  const hdf5::Silence silence;
  const auto checked = [&](hdf5::Handle handle, const std::string& what) {
    if (handle.empty()) throw InputError("cannot create " + what + " of " + file.string() + ": " + hdf5::last_error());
    return handle;
  };
  impl_->path = file;
  impl_->file = checked({H5Fcreate(file.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose}, "the file");
  for (const Hdf5Array& array : arrays) {
    const std::vector<hsize_t> extents(array.shape.begin(), array.shape.end());
    const int rank = static_cast<int>(extents.size());
    Impl::Array made{{},
                     checked({H5Screate_simple(rank, extents.data(), nullptr), H5Sclose}, "the places"),
                     std::vector<hsize_t>(extents.size(), 0),
                     extents,
                     static_cast<std::size_t>(array.shape.without_batch().count()) * size_of(array.dtype),
                     type_of(array.dtype)};
    made.dataset = checked({H5Dcreate2(impl_->file.id(), array.name.c_str(), made.type, made.places.id(), H5P_DEFAULT,
                                       H5P_DEFAULT, H5P_DEFAULT),
                            H5Dclose},
                           "'" + array.name + "'");
    impl_->arrays.push_back(std::move(made));
  }
}

Hdf5Writer::~Hdf5Writer() {
  const auto lock = hdf5::lock();
  impl_.reset();
}

void Hdf5Writer::write(std::size_t array, std::span<const std::byte> samples) {
  const auto lock = hdf5::lock();
  const hdf5::Silence silence;
  Impl::Array& to = impl_->arrays[array];
  to.count[0] = samples.size() / to.sample_bytes;
  const hdf5::Handle memory(H5Screate_simple(static_cast<int>(to.count.size()), to.count.data(), nullptr), H5Sclose);
  if (memory.empty() ||
      H5Sselect_hyperslab(to.places.id(), H5S_SELECT_SET, to.next.data(), nullptr, to.count.data(), nullptr) < 0 ||
      H5Dwrite(to.dataset.id(), to.type, memory.id(), to.places.id(), H5P_DEFAULT, samples.data()) < 0)
    throw ResourceError("cannot write " + impl_->path.string() + ": " + hdf5::last_error());
  to.next[0] += to.count[0];
}

void Hdf5Writer::flush() {
  const auto lock = hdf5::lock();
  const hdf5::Silence silence;
  if (H5Fflush(impl_->file.id(), H5F_SCOPE_GLOBAL) < 0)
    throw ResourceError("cannot write " + impl_->path.string() + ": " + hdf5::last_error());
}

}  // namespace ronda
