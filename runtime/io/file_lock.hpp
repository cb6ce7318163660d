#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ronda {

class Descriptor;

/// An exclusive lock on a file. The system releases the lock when the holder's process ends, for any reason; a file
/// server releases it within a minute or two after a host fails. The file itself is not removed.
class FileLock {
 public:
  enum class Outcome : std::uint8_t {
    taken,
    busy,    ///< another holder has the lock
    unknown  ///< this file system does not support locks
  };

  /// Opens or creates the file. Throws InputError if that fails, or if it is another user's link or file.
  explicit FileLock(std::filesystem::path path);
  /// Releases the lock.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Tries once to take the lock, without waiting. If taken, writes `holder` to the file.
  Outcome take(std::string_view holder);
  /// Whether the path still leads to the opened file. False if the file was removed or replaced.
  [[nodiscard]] bool in_place() const;
  /// The text that the holder wrote; empty if it cannot be read.
  [[nodiscard]] std::string holder() const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
};

}  // namespace ronda
