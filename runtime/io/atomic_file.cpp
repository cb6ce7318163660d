#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/io/detail/descriptor.hpp>
#include <ronda/runtime/io/detail/place.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace ronda {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_write(const Place& place, int error) {
  const std::string text = "cannot write " + place.path().string() + ": " + std::strerror(error);
  if (is_no_room(error)) throw NoRoomError(text);
  throw ResourceError(text);
}

/// Makes what was done in `folder` last. A file system that cannot do it is left alone.
void synchronise(int folder, const char* path) {
  const Descriptor descriptor(::openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.open()) ::fsync(descriptor.number());
}

/// The new file gets the mode and the group of the one that it is to replace, which is ours.
void inherit(int file, const struct stat& old) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return;
  mode_t mode = old.st_mode & 0777;
  if (status.st_gid != old.st_gid && ::fchown(file, static_cast<uid_t>(-1), old.st_gid) != 0)
    mode = (mode & 0707) | (mode & 07) << 3;  // another group gets what everybody has
  if (mode != (status.st_mode & 0777)) ::fchmod(file, mode);
}

}  // namespace

bool is_no_room(int error) noexcept { return error == ENOSPC || error == EDQUOT; }

AtomicFile::AtomicFile(const fs::path& path)
    : place_(std::make_unique<Place>(path)), file_(std::make_unique<Descriptor>()) {
  if (place_->is_special())
    *file_ = place_->open_special();
  else
    make_part();
}

AtomicFile::~AtomicFile() {
  if (!part_.empty()) ::unlinkat(place_->folder(), part_.c_str(), 0);
}

void AtomicFile::make_part() {
  constexpr std::size_t longest = 200;  // bytes of the file's name in the part's, for which there are 255
  std::string part = place_->name().substr(0, longest) + ".part." + random_token();
  const auto& old = place_->found();
  const bool ours = old && old->st_uid == ::geteuid();
  const mode_t mode = old ? old->st_mode & (ours ? 0777 : 0666) : 0666;  // of which the umask takes its share
  *file_ =
      Descriptor(::openat(place_->folder(), part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file_->open() && is_no_room(errno))
    throw NoRoomError("cannot create " + place_->path().string() + ": " + std::strerror(errno));
  if (!file_->open()) throw place_->cannot_create(errno);
  part_ = std::move(part);
  if (ours) inherit(file_->number(), *old);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(file_->number(), bytes); error != 0) refuse_write(*place_, error);
}

void AtomicFile::commit() {
  if (part_.empty()) {
    file_->close();
    return;
  }
  const int folder = place_->folder();
  if (::fsync(file_->number()) != 0 || file_->close() != 0 ||
      ::renameat(folder, part_.c_str(), folder, place_->name().c_str()) != 0)
    refuse_write(*place_, errno);
  part_.clear();
  synchronise(folder, ".");
}

void synchronise_folder(const fs::path& folder) { synchronise(AT_FDCWD, folder.empty() ? "." : folder.c_str()); }

void check_creatable(const fs::path& path) {
  const Place place(path);
  if (place.is_special()) {
    if (::faccessat(place.folder(), place.name().c_str(), W_OK, AT_EACCESS) != 0) throw place.cannot_create(errno);
    return;
  }
  try {
    static_cast<void>(AtomicFile(path));
  } catch (const NoRoomError& error) {
    throw InputError(error.message());
  }
}

}  // namespace ronda
