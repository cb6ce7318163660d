#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <zlib.h>

#include <ronda/core/error.hpp>

namespace ronda {

/// A file that is read from its beginning to its end, gzipped or not: it is gzipped where it begins with gzip's magic
/// number. A gzip file has one member or several, one behind the other; zeros behind the last one are padding.
class GzipFile {
 public:
  /// Throws InputError where it cannot be opened, or is a folder.
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Fills `bytes` as far as the file goes; returns how many there were. The sum of each member is checked at its end.
  /// Throws InputError that names the file: where it cannot be read, where a member is broken or cut off, and where
  /// something else than a member stands behind one.
  std::size_t read(std::span<std::uint8_t> bytes);

  /// To throw: names the file, `what`, and the remedy.
  [[nodiscard]] InputError damaged(const std::string& what) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  /// Whether there is input; reads the next piece of the file where all of the last one was taken.
  bool has_input();
  std::size_t copy(std::span<std::uint8_t> bytes);
  std::size_t unpack(std::span<std::uint8_t> bytes);
  /// Behind a member: whether another one begins.
  bool next_member();
  [[nodiscard]] InputError broken(const std::string& how) const;

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::array<std::uint8_t, std::size_t{1} << 16> input_;
  z_stream stream_{};  ///< its next_in and avail_in are the rest of the input, also of a file that is not gzipped
  bool gzipped_ = false, in_member_ = false;
};

/// All of a text file, gzipped or not, as UTF-8 has it: without a byte order mark; where its lines end with CR alone,
/// they end with LF. Throws InputError that names the file, also where it is UTF-16.
[[nodiscard]] std::string whole_text(const std::filesystem::path& path);

}  // namespace ronda
