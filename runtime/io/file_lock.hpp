#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace ronda {

class Descriptor;

/// A file that one holder at a time has locked. The system gives the lock back when the holder's process ends, however
/// it ends; a file server does so for a host that is gone, within a minute or two. The file itself stays.
class FileLock {
 public:
  enum class Outcome : std::uint8_t {
    taken,
    busy,    ///< another holder has it
    unknown  ///< this file system has no locks
  };

  /// Opens the file, and makes it where there is none. Throws InputError where that cannot be, or a stranger's link or
  /// file is there.
  explicit FileLock(std::filesystem::path path);
  /// Gives the lock back.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Tries once, without waiting. Where it is taken the file says who has it.
  Outcome take(std::string_view holder);
  /// Whether the file is still where it was opened: somebody may have removed it, and made another.
  [[nodiscard]] bool in_place() const;
  /// What the holder wrote; empty where that cannot be read.
  [[nodiscard]] std::string holder() const;

 private:
  std::filesystem::path path_;
  std::unique_ptr<Descriptor> file_;
};

}  // namespace ronda
