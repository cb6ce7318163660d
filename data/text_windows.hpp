#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include <ronda/core/buffer.hpp>
#include <ronda/data/dataset.hpp>

namespace ronda {

/// A file of bytes, such as a text for a byte-level language model, divided into consecutive windows of `context`
/// bytes. `input`: int32 (context), the bytes, 0 to 255; `target`: int32 (context), the byte after each. The last
/// bytes, if too few for a window, are ignored.
///
///     "the moon", context 3      input  "the"  " mo"
///                                target "he "  "moo"
///
/// With `.vary` the windows of each training epoch begin 0 to context - 1 bytes earlier, so that in each epoch a byte
/// has other predecessors and another position. Two kinds of windows do not move: the first one, and each one after a
/// window outside SampleRequest::pool, such as a validation window. Equal seeds give equal windows on any number of
/// ranks.
///
/// The file is mapped: it may be larger than memory, and the ranks of a node share it. It must not be truncated while
/// it is mapped: that ends the process (SIGBUS).
class TextWindows final : public Dataset {
 public:
  struct Options {
    bool vary = false;
  };

  /// Throws InputError that names the file if it cannot be read, is gzipped, or is too short for a window.
  TextWindows(const std::filesystem::path& path, std::int64_t context, const Options& options);
  TextWindows(const std::filesystem::path& path, std::int64_t context) : TextWindows(path, context, Options()) {}

  [[nodiscard]] std::size_t size() const override { return (text_.bytes() - 1) / context_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::string origin(std::uint64_t /*sample*/) const override { return file_; }
  /// Empty with `.vary`.
  [[nodiscard]] std::vector<StoredField> stored() const override;
  /// A hash of the file's size and of Dataset::fingerprint.
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  std::string file_;
  std::size_t context_;
  bool vary_;
  Buffer text_;
  std::array<Field, 2> fields_;
};

}  // namespace ronda
