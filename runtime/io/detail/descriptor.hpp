#pragma once
#include <cstddef>
#include <span>
#include <unistd.h>
#include <utility>

#include <ronda/runtime/io/file_lock.hpp>

namespace ronda {

/// An open file; closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  /// What close(2) returns, 0 where nothing was open: NFS reports a full disk only here.
  int close() noexcept { return open() ? ::close(std::exchange(number_, -1)) : 0; }

 private:
  int number_;
};

/// Writes all bytes, in as many calls as it takes. Returns 0 or errno. If the file would exceed `ulimit -f` that is
/// EFBIG, and the process is not killed by SIGXFSZ.
[[nodiscard]] int write_all(int file, std::span<const std::byte> bytes) noexcept;

/// Locks an open file as long as it is open, without waiting.
/// @param file  a descriptor that is open for writing
[[nodiscard]] FileLock::Outcome lock_whole(int file) noexcept;

}  // namespace ronda
