#include <ronda/runtime/io/detail/descriptor.hpp>
#include <ronda/runtime/io/detail/place.hpp>
#include <ronda/runtime/io/file_lock.hpp>
#include <ronda/runtime/io/whole_file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace ronda {

FileLock::Outcome lock_whole(int file) noexcept {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file, F_OFD_SETLK, &whole) == 0) return FileLock::Outcome::taken;
  return errno == EAGAIN || errno == EACCES ? FileLock::Outcome::busy : FileLock::Outcome::unknown;
}

FileLock::FileLock(std::filesystem::path path)
    : path_(std::move(path)), file_(std::make_unique<Descriptor>(Place(path_).open_to_append())) {}

FileLock::~FileLock() = default;

FileLock::Outcome FileLock::take(std::string_view holder) {
  if (const Outcome outcome = lock_whole(file_->number()); outcome != Outcome::taken) return outcome;
  if (::ftruncate(file_->number(), 0) == 0)  // who has it is a help, no more
    static_cast<void>(!::write(file_->number(), holder.data(), holder.size()));
  return Outcome::taken;
}

bool FileLock::in_place() const {
  struct stat here {
  }, there{};
  return ::fstat(file_->number(), &here) == 0 && ::stat(path_.c_str(), &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

std::string FileLock::holder() const {
  constexpr std::size_t enough = 1000;
  try {
    std::string text = read_text(path_, enough);
    for (char& c : text)
      if (c < ' ' || c > '~') c = '?';
    return text;
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace ronda
