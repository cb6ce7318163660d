#include <ronda/runtime/io/detail/place.hpp>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace ronda {
namespace {

namespace fs = std::filesystem;

constexpr int most_links = 40;  // as the system has it

bool is_trusted(uid_t owner) { return owner == ::geteuid() || owner == 0; }

}  // namespace

Place::Place(const fs::path& path) : path_(path) {
  if (path.empty()) throw cannot_create(ENOENT);
  walk(path);
  while (!rest_.empty()) {
    name_ = std::move(rest_.front());
    rest_.pop_front();
    const bool last = rest_.empty();
    struct stat status {};
    const bool there = ::fstatat(folder(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && (errno != ENOENT || !last)) throw cannot_create(errno);
    if (there && S_ISLNK(status.st_mode))
      follow(status, last);
    else if (!last)
      enter(name_);
    else if (there)
      found_ = status;
  }
  if (found_ && S_ISDIR(found_->st_mode)) throw cannot_create(EISDIR);
  if (is_special() && !by_system_ && !is_trusted(found_->st_uid) && everybody_writes_here())
    throw is_foreign("pipe or device", found_->st_uid);
}

/// The names of `path` come before those that are left.
void Place::walk(const fs::path& path) {
  if (!folder_.open() || path.is_absolute()) enter(path.is_absolute() ? "/" : ".");
  auto at = rest_.begin();
  for (const auto& name : path.relative_path())  // after a slash at the end there is an empty one
    at = rest_.insert(at, name.empty() ? "." : name.string()) + 1;
  if (rest_.empty()) rest_.emplace_back(".");
}

void Place::enter(const std::string& name) {
  const bool begin = !folder_.open() || name == "/";
  Descriptor next(::openat(begin ? AT_FDCWD : folder(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!next.open()) throw cannot_create(errno);
  folder_ = std::move(next);
}

/// The name in the folder is a link.
void Place::follow(const struct stat& link, bool last) {
  if (!is_trusted(link.st_uid) && (last || everybody_writes_here())) throw is_foreign("link", link.st_uid);
  struct stat target {};
  if (last && leads_to_open_file(target)) {
    if (S_ISREG(target.st_mode)) throw is_open_file();
    by_system_ = true;
    found_ = target;
    return;
  }
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(folder(), name_.c_str(), text.data(), text.size());
  if (length <= 0) throw cannot_create(length < 0 ? errno : ENOENT);
  if (++links_ > most_links) throw cannot_create(ELOOP);
  walk(std::string(text.data(), static_cast<std::size_t>(length)));
}

/// /dev/stdout is a link to one of /proc, whose text is no path where the output is a pipe.
bool Place::leads_to_open_file(struct stat& target) const {
  struct statfs system {};
  return ::fstatfs(folder(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
         ::fstatat(folder(), name_.c_str(), &target, 0) == 0 && !S_ISDIR(target.st_mode);
}

bool Place::everybody_writes_here() const {
  struct stat status {};
  return ::fstat(folder(), &status) != 0 || (status.st_mode & S_IWOTH) != 0;
}

InputError Place::cannot_create(int error) const {
  return InputError("cannot create " + path_.string() + ": " + std::strerror(error) +
                    "; give a file in a folder that exists and that you may write to");
}

InputError Place::is_open_file() const {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlinkat(folder(), name_.c_str(), text.data(), text.size());
  const std::string file(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return InputError("will not write to " + path_.string() + ": it is the open file " + file +
                    ", whose other lines would be lost; give the path of a file of its own");
}

InputError Place::is_foreign(const char* kind, uid_t owner) const {
  return InputError("will not write to " + path_.string() + ": " + name_ + " is a " + kind + " of another user (uid " +
                    std::to_string(owner) + "), who may have put it in your way; give a place in a folder of your own");
}

Descriptor Place::open_special() const {
  const int flags = O_WRONLY | O_NOCTTY | O_CLOEXEC | (by_system_ ? 0 : O_NOFOLLOW);
  Descriptor file(::openat(folder(), name_.c_str(), flags));
  struct stat status {};
  if (!file.open() || ::fstat(file.number(), &status) != 0) throw cannot_create(errno);
  if (S_ISREG(status.st_mode)) throw cannot_create(EEXIST);  // it was none just now
  return file;
}

Descriptor Place::open_to_append() const {
  if (is_special()) return open_special();
  // Where a stranger's pipe comes into the way only now, nobody waits for who reads it.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor file(::openat(folder(), name_.c_str(), flags, 0666));
  struct stat status {};
  if (!file.open() || ::fstat(file.number(), &status) != 0) throw cannot_create(errno);
  if (!S_ISREG(status.st_mode)) throw cannot_create(EEXIST);
  if (!everybody_writes_here()) return file;
  if (!is_trusted(status.st_uid)) throw is_foreign("file", status.st_uid);
  if (status.st_nlink > 1)
    throw InputError("will not write to " + path_.string() +
                     ": the file has other names too, one of which a stranger may have given it; give another file");
  return file;
}

}  // namespace ronda
