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

/// Reads a file from its beginning to its end. It is unpacked if it begins with gzip's magic number. A gzip file has
/// one member or several, one after the other; zeros after the last one are padding.
class GzipFile {
 public:
  /// Throws InputError where it cannot be opened, or is a folder.
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  /// Fills `bytes` as far as the file goes; returns how many were read. Checks the sum of each member at its end.
  /// Throws InputError that names the file, if it cannot be read, a member is broken or cut off, or other bytes follow
  /// a member.
  std::size_t read(std::span<std::uint8_t> bytes);

  /// To throw: names the file, `what`, and the remedy.
  [[nodiscard]] InputError damaged(const std::string& what) const;

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };

  /// Whether there is input; reads the next piece of the file if the last one is used up.
  bool has_input();
  std::size_t copy(std::span<std::uint8_t> bytes);
  std::size_t unpack(std::span<std::uint8_t> bytes);
  /// Call after a member: whether another one begins.
  bool next_member();
  [[nodiscard]] InputError broken(const std::string& how) const;

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::array<std::uint8_t, std::size_t{1} << 16> input_;
  z_stream stream_{};  ///< its next_in and avail_in are the rest of the input, also of a file that is not gzipped
  bool gzipped_ = false, in_member_ = false;
};

/// All of a UTF-8 text file, gzipped or not, without a byte order mark. If all lines end with CR, they end with LF
/// here. Throws InputError that names the file, also if it is UTF-16.
[[nodiscard]] std::string whole_text(const std::filesystem::path& path);

}  // namespace ronda
