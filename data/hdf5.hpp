#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

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

}  // namespace ronda
