#include <ronda/core/error.hpp>
#include <ronda/runtime/io/detail/descriptor.hpp>
#include <ronda/runtime/io/detail/line_file.hpp>
#include <ronda/runtime/io/detail/place.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace ronda {
namespace {

/// Writes at an offset a file that is open to append, where writes otherwise go to its end. Returns 0 or errno.
int write_at(int file, std::uintmax_t offset, std::string_view text) {
  const int flags = ::fcntl(file, F_GETFL);
  if (flags < 0 || ::fcntl(file, F_SETFL, flags & ~O_APPEND) != 0) return errno;
  int error = ::lseek(file, static_cast<off_t>(offset), SEEK_SET) < 0 ? errno : 0;
  if (error == 0) error = write_all(file, std::as_bytes(std::span(text)));
  if (::fcntl(file, F_SETFL, flags) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

LineFile::LineFile(std::filesystem::path path, std::string_view field)
    : path_(std::move(path)),
      file_(std::make_unique<Descriptor>(Place(path_).open_to_append())),
      flushed_(std::chrono::steady_clock::now()) {
  struct stat status {};
  regular_ = ::fstat(file_->number(), &status) == 0 && S_ISREG(status.st_mode);
  if (regular_ && lock_whole(file_->number()) == FileLock::Outcome::busy)
    throw InputError(setting(field, path_.string()) +
                     " is being written by another training: end that training, or give this one a file of its own");
  newest_.reserve(longest_step);
}

LineFile::~LineFile() {
  try {
    flush();
  } catch (const ResourceError&) {  // a destructor cannot say it; who must know calls flush before
  }
}

void LineFile::reopen_last(std::string_view last, std::string_view line) {
  newest_ = line;
  newest_is_written_ = true;
  if (last != line) replace_last(last, line);
}

std::string& LineFile::begin_line() {
  push_newest();
  newest_.clear();
  newest_is_written_ = false;
  return newest_;
}

void LineFile::end_line() {
  if (std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(1)) write_buffer();
}

void LineFile::finish_newest(FunctionRef<void(std::string& line)> change) {
  if (newest_.empty() || (newest_is_written_ && !regular_)) return write_buffer();
  const std::string written = newest_is_written_ ? newest_ : std::string();
  change(newest_);
  if (written.empty())
    push_newest();
  else
    replace_last(written, newest_);
  newest_.clear();
  write_buffer();
}

void LineFile::flush() {
  push_newest();
  newest_is_written_ = !newest_.empty();
  write_buffer();
}

/// To the buffer, where it is not in the file.
void LineFile::push_newest() {
  if (newest_.empty() || newest_is_written_) return;
  if (buffer_.size() - used_ < newest_.size()) write_buffer();
  if (buffer_.size() < newest_.size()) return write(newest_);
  std::memcpy(buffer_.data() + used_, newest_.data(), newest_.size());
  used_ += newest_.size();
}

void LineFile::cut(std::uintmax_t bytes) {
  newest_.clear();
  shorten(bytes);
}

void LineFile::shorten(std::uintmax_t bytes) {
  if (::ftruncate(file_->number(), static_cast<off_t>(bytes)) != 0)
    throw ResourceError("cannot cut " + path_.string() + ": " + std::strerror(errno));
}

/// Replaces the file's last line in place: at no time is the file without it.
void LineFile::replace_last(std::string_view before, std::string_view after) {
  struct stat status {};
  if (::fstat(file_->number(), &status) != 0) status.st_size = 0;
  const auto length = static_cast<std::uintmax_t>(status.st_size);
  if (length < before.size()) throw ResourceError("cannot write " + path_.string() + ": another program has cut it");
  const std::uintmax_t begin = length - before.size();
  if (const int error = write_at(file_->number(), begin, after); error != 0) {
    static_cast<void>(write_at(file_->number(), begin, before));  // has room where it was
    shorten(length);
    newest_.clear();
    throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(error));
  }
  shorten(begin + after.size());
}

void LineFile::write_buffer() {
  flushed_ = std::chrono::steady_clock::now();
  write({buffer_.data(), std::exchange(used_, 0)});
}

/// If the lines do not fit on the disk, cuts off the incomplete one: the file has whole lines.
void LineFile::write(std::string_view text) {
  struct stat before {};
  const bool known = regular_ && ::fstat(file_->number(), &before) == 0;
  const int error = write_all(file_->number(), std::as_bytes(std::span(text)));
  if (error == 0) return;
  if (known) static_cast<void>(!::ftruncate(file_->number(), before.st_size));
  newest_.clear();
  throw ResourceError("cannot write " + path_.string() + ": " + std::strerror(error));
}

}  // namespace ronda
