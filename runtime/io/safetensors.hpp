#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <ronda/core/dtype.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/runtime/io/whole_file.hpp>
#include <ronda/runtime/io/storage.hpp>

namespace ronda {

/// A tensor of a file, row-major. All but one of the lists of numbers are empty.
struct NamedTensor {
  std::string name;
  Shape shape;
  std::vector<float> values = {};           ///< shape.count()
  std::vector<std::int64_t> integers = {};  ///< values of an int64 tensor
  std::vector<std::int8_t> bytes = {};      ///< values of an int8 tensor, a quantised weight
  std::vector<double> doubles = {};         ///< values of a float64 tensor; only for writing

  [[nodiscard]] DType dtype() const noexcept {
    return !bytes.empty()      ? DType::int8
           : !integers.empty() ? DType::int64
           : !doubles.empty()  ? DType::float64
                               : DType::float32;
  }
};

/// A safetensors file (https://github.com/huggingface/safetensors, "Format"): 8 bytes with the length of a JSON header,
/// the header, and the tensors' bytes back to back, all little-endian.
struct Safetensors {
  std::vector<NamedTensor> tensors;             ///< in the order of their bytes
  std::map<std::string, std::string> metadata;  ///< the header's `__metadata__`
};

/// Reads a safetensors file tensor by tensor. Names and shapes are available before any values take memory, so that
/// callers can check them first. Headers may have up to 16 MiB, enough for a hundred thousand tensors.
class SafetensorsFile {
 public:
  /// The header's entry of a tensor.
  struct Entry {
    std::string name;
    Shape shape;
    DType dtype = DType::float32;      ///< or int64, int8
    std::uint64_t begin = 0, end = 0;  ///< range of its bytes, counted from the end of the header
  };

  /// Reads and checks the header and the file's size. Throws InputError with file, tensor and error if the file is
  /// damaged, or has types other than F32, I64 and I8.
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }  ///< in the order of their bytes
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  /// The values of one of the entries, `entry.shape.count()` numbers. Throws InputError if they cannot be read, or have
  /// another type.
  [[nodiscard]] std::vector<float> read(const Entry& entry) { return read_as<float>(entry); }
  [[nodiscard]] std::vector<std::int64_t> read_integers(const Entry& entry) { return read_as<std::int64_t>(entry); }
  [[nodiscard]] std::vector<std::int8_t> read_int8(const Entry& entry) { return read_as<std::int8_t>(entry); }

 private:
  template <class T>
  std::vector<T> read_as(const Entry& entry);
  std::string read_header();
  void read_bytes(char* to, std::uint64_t count);

  std::filesystem::path path_;
  std::ifstream file_;
  std::uint64_t data_begin_ = 0, data_bytes_ = 0;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Reads a whole file at once. Throws as SafetensorsFile.
[[nodiscard]] Safetensors read_safetensors(const std::filesystem::path& path);

/// Writes the complete file or nothing. Returns size and hash of the bytes written. Throws InputError if the file
/// cannot be created, ResourceError if it cannot be written.
FileSum write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                          const std::map<std::string, std::string>& metadata = {}, Storage& storage = file_system());

}  // namespace ronda
