#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace ronda {

class FileLock;

/// The operations on files and folders that a save makes. Usually the file system; a test's storage is full, fails at a
/// certain operation, or loses what was not synchronised. The files lie under their paths in the file system, where
/// tensors are read directly. Several threads may call it at a time.
class Storage {
 public:
  using Path = std::filesystem::path;

  /// A file that appears complete, by `commit`, or not at all.
  class File {
   public:
    File() = default;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    virtual ~File() = default;
    /// Throw ResourceError if the disk refuses, NoRoomError if it is full.
    virtual void write(std::span<const std::byte> bytes) = 0;
    /// The file, its name included, is on disk on return.
    virtual void commit() = 0;
  };

  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  /// Throws InputError if the file cannot be created, NoRoomError.
  [[nodiscard]] virtual std::unique_ptr<File> create(const Path& path) = 0;
  /// Content of a whole file. Throws InputError if it cannot be read, or has more than `most` bytes.
  [[nodiscard]] virtual std::string read(const Path& path, std::size_t most) = 0;
  /// The entries of `folder`: those before an error, if there is one.
  [[nodiscard]] virtual std::vector<Path> list(const Path& folder, std::error_code& error) = 0;
  /// Throws InputError as FileLock's constructor.
  [[nodiscard]] virtual std::unique_ptr<FileLock> open_lock(const Path& path) = 0;

  /// With all folders above it; no error if it exists.
  [[nodiscard]] virtual std::error_code make_folder(const Path& folder) = 0;
  [[nodiscard]] virtual std::error_code rename(const Path& from, const Path& to) = 0;
  /// Two entries change places at once.
  [[nodiscard]] virtual std::error_code exchange(const Path& one, const Path& other) = 0;
  /// With everything inside; no error if nothing is there.
  [[nodiscard]] virtual std::error_code remove(const Path& path) = 0;
  /// Writes the entries of `folder` to disk, so that files created, renamed or removed there persist. Throws
  /// ResourceError; does nothing on file systems that do not support it.
  virtual void synchronise(const Path& folder) = 0;
};

/// The system's own.
[[nodiscard]] Storage& file_system() noexcept;

}  // namespace ronda
