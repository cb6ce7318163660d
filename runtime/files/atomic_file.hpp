#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace ronda {

/// A file that appears whole or not at all: written beside its place as FILE.part.PID, synchronised, renamed by
/// `commit`; without a commit the part is removed and what was there before stays. A place that is no regular file (a
/// pipe, /dev/null) is written directly.
class AtomicFile {
 public:
  /// Throws InputError where the file cannot be created.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throw ResourceError where the disk does not take it.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  void close() noexcept;

  std::filesystem::path path_, part_;  ///< the part's name is empty where there is none
  int descriptor_ = -1;
};

/// Throws InputError where `path` could not be created now; so a program can say so before it works for hours.
void check_creatable(const std::filesystem::path& path);

/// Makes what was created, renamed or removed in `folder` last: its own entries reach the disk too. A file system that
/// cannot do it is left alone.
void synchronise_folder(const std::filesystem::path& folder);

}  // namespace ronda
