#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/data/byte_values.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// An array in a NumPy file.
struct NumpyArray {
  std::string source;  ///< `features.npy`, or `set.npz[features]`, for errors
  Shape shape;
  DType dtype = DType::float32;
  Buffer values;  ///< in C order; any alignment; read-only
};

/// Maps a .npy file, so it may be larger than memory, and the ranks of a node share it. The file must not be truncated
/// while it is mapped: that ends the process (SIGBUS). Supports little-endian float16, float32, float64, uint8, int8,
/// int32 and int64, in C order. Throws InputError that names the file, the expected and actual value, and the remedy if
/// it is damaged or has another order or type.
[[nodiscard]] NumpyArray read_npy(const std::filesystem::path& file);

/// The header of a .npy file, format version 1.0, for little-endian values in C order.
[[nodiscard]] std::string npy_header(const Shape& shape, DType dtype);

/// Reads an array of a .npz file. It is mapped if numpy.savez wrote it; if numpy.savez_compressed did, it is
/// decompressed to memory and its checksum verified. Throws InputError that lists the names if there is no such array.
[[nodiscard]] NumpyArray read_npz(const std::filesystem::path& file, const std::string& name);

/// A dataset field from an array whose first axis is the sample axis.
struct NumpyField {
  std::string name;
  NumpyArray array;
  ByteValues bytes = ByteValues::unit;
};

/// Samples of arrays in NumPy files, with the types of type_in_batch.
class NumpyDataset final : public Dataset {
 public:
  /// Throws InputError if the arrays have different numbers of samples, no samples, or a repeated name.
  explicit NumpyDataset(std::vector<NumpyField> fields);
  /// `input` and `target`; bytes are pixels in `input` and labels in `target`.
  NumpyDataset(NumpyArray inputs, NumpyArray targets);

  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  /// Throws InputError that names array and sample if an integer exceeds int32.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override;
  /// Empty if a field is float64, float16, int8 or int64.
  [[nodiscard]] std::vector<StoredField> stored() const override;

 private:
  std::vector<NumpyField> arrays_;
  std::vector<Field> fields_;
  std::size_t size_ = 0;
};

}  // namespace ronda
