#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/files/atomic_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace ronda {
namespace {

namespace fs = std::filesystem;

InputError cannot_create(const fs::path& path, int error) {
  return InputError("cannot create " + path.string() + ": " + std::strerror(error) +
                    "; give a file in a folder that exists and that you may write to");
}

ResourceError cannot_write(const fs::path& path, int error) {
  return ResourceError("cannot write " + path.string() + ": " + std::strerror(error));
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  if (const auto target = fs::canonical(path_, error); !error) path_ = target;  // a link stays a link
  const auto status = fs::status(path_, error);
  if (path_.empty() || fs::is_directory(status)) throw cannot_create(path_, path_.empty() ? ENOENT : EISDIR);
  const bool direct = fs::exists(status) && !fs::is_regular_file(status);
  if (!direct) part_ = path_.string() + ".part." + std::to_string(::getpid());
  descriptor_ = ::open((direct ? path_ : part_).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw cannot_create(path_, errno);
}

AtomicFile::~AtomicFile() { close(); }

void AtomicFile::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!part_.empty()) ::unlink(part_.c_str());
  part_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw cannot_write(path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  if (part_.empty()) return close();
  if (::fsync(descriptor_) != 0) throw cannot_write(path_, errno);
  const int closed = ::close(descriptor_);  // NFS reports a full disk only here
  descriptor_ = -1;
  if (closed != 0) throw cannot_write(path_, errno);
  if (::rename(part_.c_str(), path_.c_str()) != 0) throw cannot_write(path_, errno);
  part_.clear();
  synchronise_folder(path_.parent_path());
}

void synchronise_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

void check_creatable(const fs::path& path) { const AtomicFile trial(path); }

}  // namespace ronda
