#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/buffer.hpp>
#include <ronda/core/shape.hpp>
#include <ronda/data/byte_values.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// An array that NumPy has saved.
struct NumpyArray {
  std::string source;  ///< `features.npy`, or `set.npz[features]`, for errors
  Shape shape;
  DType dtype = DType::float32;
  Buffer values;  ///< in C order; at no particular alignment, and not to be written
};

/// Maps a .npy file, so that it may be larger than memory and the ranks of a node share it; it must not become shorter
/// meanwhile, which ends the process. Little-endian numbers of float16, float32, float64, uint8, int8, int32 and int64
/// are read, in C order. Throws InputError that names the file, what was expected and found, and the remedy, where it
/// is damaged or has another order or type.
[[nodiscard]] NumpyArray read_npy(const std::filesystem::path& file);

/// What a .npy file begins with, before its values, in C order: little-endian, format version 1.0.
[[nodiscard]] std::string npy_header(const Shape& shape, DType dtype);

/// The same for an array of a .npz file: mapped where numpy.savez wrote it, unpacked to memory, and its checksum
/// compared, where numpy.savez_compressed did. Throws InputError, listing the names there are, for one that there is
/// not.
[[nodiscard]] NumpyArray read_npz(const std::filesystem::path& file, const std::string& name);

/// A field of a dataset by an array, whose first axis counts the samples.
struct NumpyField {
  std::string name;
  NumpyArray array;
  ByteValues bytes = ByteValues::unit;
};

/// Samples of arrays that NumPy has saved, with the types of type_in_batch.
class NumpyDataset final : public Dataset {
 public:
  /// Throws InputError where the arrays have different numbers of samples, none, or a name twice.
  explicit NumpyDataset(std::vector<NumpyField> fields);
  /// `input` and `target`; bytes are pixels in the one and labels in the other.
  NumpyDataset(NumpyArray inputs, NumpyArray targets);

  [[nodiscard]] std::size_t size() const override { return size_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  /// Throws InputError that names array and sample where a whole number is beyond int32.
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t sample) const override;
  /// Empty where a field is of float64, float16, int8 or int64.
  [[nodiscard]] std::vector<StoredField> stored() const override;

 private:
  std::vector<NumpyField> arrays_;
  std::vector<Field> fields_;
  std::size_t size_ = 0;
};

}  // namespace ronda
