#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include <ronda/core/buffer.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// A file of any bytes, a text for a language model of bytes, cut into windows of `context` bytes, one behind the
/// other: `input` int32 (context), the bytes from 0 to 255, and `target` int32 (context), the byte behind each. The
/// last bytes, too few for a window, are left out.
///
///     "the moon", context 3      input  "the"  " mo"
///                                target "he "  "moo"
///
/// With `.vary` the windows of each epoch of a training begin a number of bytes earlier, from 0 to context - 1, so that
/// a byte is seen behind other bytes, and not at the same place, in each of them. Two kinds of windows do not move: the
/// first one, and each one behind a window outside SampleRequest::pool, such as a window of the validation. Equal seeds
/// give equal windows on any number of ranks.
///
/// The file is mapped: it may be larger than memory, and the ranks of a node share it. It must not become shorter
/// meanwhile, which ends the process.
class TextWindows final : public Dataset {
 public:
  struct Options {
    bool vary = false;
  };

  /// Throws InputError that names the file: where it cannot be read, is gzipped, or has no window.
  TextWindows(const std::filesystem::path& path, std::int64_t context, const Options& options);
  TextWindows(const std::filesystem::path& path, std::int64_t context) : TextWindows(path, context, Options()) {}

  [[nodiscard]] std::size_t size() const override { return (text_.bytes() - 1) / context_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t /*sample*/) const override { return file_; }
  /// Empty with `.vary`.
  [[nodiscard]] std::vector<StoredField> stored() const override;
  /// Of the file's size, and of a dataset's usual samples.
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  std::string file_;
  std::size_t context_;
  bool vary_;
  Buffer text_;
  std::array<Field, 2> fields_;
};

}  // namespace ronda
