#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/shape.hpp>
#include <ronda/data/byte_values.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// A field of a dataset by an array in an HDF5 file, whose first axis counts the samples.
struct Hdf5Field {
  std::string name;
  std::string dataset;  ///< its path in the file: `train/images`
  ByteValues bytes = ByteValues::unit;
};

/// Samples of arrays in an HDF5 file, with the types of type_in_batch; numbers may be of either byte order. A sample is
/// read from the file when it is asked for, so the file may be larger than memory; of a dataset in chunks with
/// compression, chunks that were unpacked last are kept, 64 MiB of them. HDF5 serves one thread at a time. `read` then
/// throws InputError that names file, dataset and sample where that is damaged, or a whole number is beyond int32. The
/// fingerprint is of the file's size, the fields, and 64 samples.
///
/// Throws InputError that names file and dataset, what was expected and found: where one is missing, of another type,
/// or without samples, where the numbers of samples differ, and in a build without HDF5.
[[nodiscard]] std::unique_ptr<Dataset> open_hdf5(const std::filesystem::path& file,
                                                 const std::vector<Hdf5Field>& fields);

/// An array that is to be written to an HDF5 file.
struct Hdf5Array {
  std::string name;
  Shape shape;                   ///< with the samples as its first axis
  DType dtype = DType::float32;  ///< or uint8, int32
};

/// Writes a new HDF5 file of arrays, sample by sample.
class Hdf5Writer {
 public:
  /// Throws InputError where there is such a file, or it cannot be created, and in a build without HDF5.
  Hdf5Writer(const std::filesystem::path& file, const std::vector<Hdf5Array>& arrays);
  ~Hdf5Writer();  ///< closes the file

  /// The next samples of an array, little-endian as in memory. Throws ResourceError where they cannot be written.
  void write(std::size_t array, std::span<const std::byte> samples);
  /// Gives everything to the file system. Throws ResourceError where that does not take it.
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
