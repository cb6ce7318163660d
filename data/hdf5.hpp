#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/tensor.hpp>
#include <ronda/data/byte_values.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// A dataset field from an array in an HDF5 file. The array's first axis is the sample axis.
struct Hdf5Field {
  std::string name;
  std::string dataset;  ///< its path in the file: `train/images`
  ByteValues bytes = ByteValues::unit;
};

/// Samples of arrays in an HDF5 file, with the types of type_in_batch, in either byte order. A sample is read from the
/// file when it is requested, so the file may be larger than memory. For compressed datasets, the 64 MiB of chunks that
/// were decompressed last are cached. HDF5 serves one thread at a time. `read` throws InputError that names file,
/// dataset and sample if the sample is damaged or an integer exceeds int32. The fingerprint covers the file's size, the
/// fields, and 64 samples.
///
/// Throws InputError that names file, dataset, and the expected and actual value if one is missing, has another type or
/// no samples, or if the numbers of samples differ; and in a build without HDF5.
[[nodiscard]] std::unique_ptr<Dataset> open_hdf5(const std::filesystem::path& file,
                                                 const std::vector<Hdf5Field>& fields);

/// An array to write to an HDF5 file.
struct Hdf5Array {
  std::string name;
  Shape shape;                   ///< the first axis is the sample axis
  DType dtype = DType::float32;  ///< or uint8, int32
};

/// Writes a new HDF5 file of arrays, sample by sample.
class Hdf5Writer {
 public:
  /// Throws InputError if the file exists or cannot be created, and in a build without HDF5.
  Hdf5Writer(const std::filesystem::path& file, const std::vector<Hdf5Array>& arrays);
  ~Hdf5Writer();  ///< closes the file

  /// Appends samples to an array, little-endian as in memory. Throws ResourceError if they cannot be written.
  void write(std::size_t array, std::span<const std::byte> samples);
  /// Flushes all data to the file system. Throws ResourceError if that fails.
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
