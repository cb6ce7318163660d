#pragma once
#include <cstddef>
#include <span>

// Private to runtime/io: not installed.
namespace ronda {

/// Writes all bytes, in as many calls as it takes. Returns 0 or errno. If the file would exceed `ulimit -f` that is
/// EFBIG, and the process is not killed by SIGXFSZ.
[[nodiscard]] int write_all(int file, std::span<const std::byte> bytes) noexcept;

}  // namespace ronda
