#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>
#include <ronda/runtime/io/storage.hpp>

namespace ronda {

class Descriptor;
class Place;

/// The disk is full, or the user's quota is exceeded.
class NoRoomError : public ResourceError {
 public:
  using ResourceError::ResourceError;
};
/// Whether the errno value `error` means that the disk or the quota is full.
[[nodiscard]] bool is_no_room(int error) noexcept;

/// A file that appears complete or not at all: written to FILE.part.TOKEN in the same folder, then synchronised and
/// renamed by `commit`. Without a commit the part is removed, and an existing file is unchanged. A pipe or device
/// (/dev/null) is written directly.
///
/// Safe in folders that other users can write to: the name of the part is random, and the part is never an existing
/// file. Symbolic links of this user or root are followed, and stay links. Another user's link is refused, except where
/// the link is a folder of the path and lies in a folder that is not writable for all users. A replaced file keeps its
/// mode if this user owns it; otherwise the new file gets no more permissions than the old one. A new file's mode
/// follows the umask.
class AtomicFile final : public Storage::File {
 public:
  /// Throws InputError if the file cannot be created, or its path has another user's link; NoRoomError.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile() override;

  /// Throw ResourceError if the disk refuses, NoRoomError if it is full.
  void write(std::span<const std::byte> bytes) override;
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit() override;

 private:
  void make_part();

  std::unique_ptr<const Place> place_;
  std::unique_ptr<Descriptor> file_;
  std::string part_;  ///< name of the part in the folder; empty: no part exists
};

/// Throws InputError if `path` could not be created now, so that a program fails before hours of work. Writes nothing,
/// and does not open pipes, as closing one would end the reader's data.
void check_creatable(const std::filesystem::path& path);

/// Writes the entries of `folder` to disk, so that files created, renamed or removed there persist. Does nothing on
/// file systems that do not support it.
void synchronise_folder(const std::filesystem::path& folder);

}  // namespace ronda
