#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <ronda/core/error.hpp>

namespace ronda {

class Descriptor;
class Place;

/// The disk is full, or the user's share of it.
class NoRoomError : public ResourceError {
 public:
  using ResourceError::ResourceError;
};
/// Whether `error`, an errno value, means that.
[[nodiscard]] bool is_no_room(int error) noexcept;

/// A file that appears whole or not at all: written next to its place as FILE.part.TOKEN, synchronised, renamed by
/// `commit`; without a commit the part is removed and what was there before stays. A place that is no regular file (a
/// pipe, /dev/null) is written directly.
///
/// In folders that others write to as well: the part's name cannot be foretold, and nothing that is there already is
/// opened. A link of one's own, or of root's, is followed, and stays a link; another user's never is, unless it is a
/// folder on the way that only its owner's folder could lead through. A file that is replaced keeps its mode; another
/// user's is never replaced by a wider one, and a new one is as wide as the umask lets it be.
class AtomicFile {
 public:
  /// Throws InputError if the file cannot be created, or its path has another user's link; NoRoomError.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throw ResourceError if the disk refuses, NoRoomError if it is full.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void commit();

 private:
  void make_part();

  std::unique_ptr<const Place> place_;
  std::unique_ptr<Descriptor> file_;
  std::string part_;  ///< its name in the place's folder; empty where there is none
};

/// Throws InputError if `path` could not be created now, so that a program fails before hours of work. Writes nothing,
/// and opens no pipe: its reader would see the end of the data.
void check_creatable(const std::filesystem::path& path);

/// Makes what was created, renamed or removed in `folder` last: its own entries reach the disk too. A file system that
/// cannot do it is left alone.
void synchronise_folder(const std::filesystem::path& folder);

}  // namespace ronda
