#pragma once
#include <array>
#include <cstdint>
#include <filesystem>

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
/// The file is mapped: it may be larger than memory, and the ranks of a node share it. It must not become shorter
/// meanwhile, which ends the process.
class TextWindows final : public Dataset {
 public:
  /// Throws InputError that names the file: where it cannot be read, is gzipped, or has no window.
  TextWindows(const std::filesystem::path& path, std::int64_t context);

  [[nodiscard]] std::size_t size() const override { return (text_.bytes() - 1) / context_; }
  [[nodiscard]] std::span<const Field> fields() const override { return fields_; }
  void read(const SampleRequest& request, Batch& batch) const override;
  [[nodiscard]] std::vector<StoredField> stored() const override;
  /// Of the file's size, and of a dataset's usual samples.
  [[nodiscard]] std::uint64_t fingerprint() const override;

 private:
  std::size_t context_;
  Buffer text_;
  std::array<Field, 2> fields_;
};

}  // namespace ronda
