#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <ronda/core/function_ref.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

class Descriptor;

/// A text file to which a training appends a line per step, and which always ends with a complete line. Lines are
/// collected in a buffer of fixed size, which is written to the file at least each second. The newest line can still be
/// changed, also if the file has it. Appending a line of up to 1024 bytes allocates nothing.
///
/// Other users' links and files are not written to; see AtomicFile. The file is locked during the lifetime of this
/// object, if its file system has locks.
class LineFile {
 public:
  static constexpr std::size_t longest_step = 1024;

  /// Throws InputError if the file cannot be created, or another training writes to it.
  /// @param field  of the option that names the file
  LineFile(std::filesystem::path path, std::string_view field);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// False for a pipe, which keeps nothing.
  [[nodiscard]] bool is_regular() const noexcept { return regular_; }

  /// Cuts the file after so many bytes.
  void cut(std::uintmax_t bytes);
  /// Makes the file's last line the newest one, changed to `line`; both end with a newline.
  void reopen_last(std::string_view last, std::string_view line);

  // All of these throw ResourceError if the disk refuses lines; the file then ends with a complete line, and later
  // lines are lost.

  /// Returns an empty line, the newest one, to be written up to its newline before `end_line`.
  [[nodiscard]] std::string& begin_line();
  void end_line();
  /// Calls `change` for the newest line, which cannot change later. Does nothing if there is none, or if a pipe has it.
  void finish_newest(FunctionRef<void(std::string& line)> change);
  /// Writes all lines.
  void flush();

 private:
  void push_newest();
  void write_buffer();
  void shorten(std::uintmax_t bytes);
  void write(std::string_view text);
  void replace_last(std::string_view before, std::string_view after);

  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
  std::array<char, 64 * longest_step> buffer_;
  std::size_t used_ = 0;
  std::string newest_;              ///< empty: none, or it cannot change
  bool newest_is_written_ = false;  ///< `newest_` is already in the file
  bool regular_ = false;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace ronda
