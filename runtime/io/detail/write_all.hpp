#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>

// For this room alone: not installed.
namespace ronda {

/// Writes all of it, however many calls that takes. Returns 0, or what errno was.
[[nodiscard]] inline int write_all(int file, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace ronda
