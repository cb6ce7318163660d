#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <zlib.h>

#include <ronda/core/error.hpp>

namespace ronda {

/// A file that zlib reads from its beginning to its end, gzipped or not.
class GzipFile {
 public:
  /// Throws InputError where it cannot be opened, or is a folder.
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile() { gzclose(file_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Fills `bytes` as far as the file goes; how many there were. At the end zlib checks its sum. Throws InputError that
  /// names the file.
  std::size_t read(std::span<std::uint8_t> bytes);

  /// To throw: names the file, `what`, and the remedy.
  [[nodiscard]] InputError damaged(const std::string& what) const;

 private:
  std::filesystem::path path_;
  gzFile file_;
};

/// All of a text file, gzipped or not, without a byte order mark. Throws InputError that names the file.
[[nodiscard]] std::string whole_text(const std::filesystem::path& path);

}  // namespace ronda
