#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <ronda/core/dtype.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/data/hdf5/handle.hpp>

namespace ronda::hdf5 {

/// A dataset of HDF5: an array in a file. Its users hold the lock.
class Array {
 public:
  /// @param file  open; outlives this object
  /// Throws InputError.
  Array(const Handle& file, const std::filesystem::path& path, const std::string& name);

  /// Throws InputError for an array, or its chunks, that a file of so many bytes cannot hold: it would take all memory.
  /// Also for an array in one piece whose stored size is not that of its shape: HDF5 would read beyond it. An array
  /// whose values are in other files is not looked at.
  void require_possible(std::uint64_t file_bytes) const;

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }  ///< `file.h5[name]`, for errors
  /// Writes a place on the first axis to `values`, as numbers of dtype(). Throws InputError.
  void read(std::uint64_t sample, std::byte* values) const;

 private:
  void read_shape();
  void read_type();
  [[nodiscard]] InputError error(const std::string& what) const { return InputError(source_ + ": " + what); }

  std::string source_;
  Handle dataset_, places_, one_;  ///< the array; its places in the file; those of a sample in memory
  Shape shape_;
  DType dtype_ = DType::float32;
};

}  // namespace ronda::hdf5
