#pragma once
#include <cstddef>
#include <span>

// For this room alone: not installed.
namespace ronda {

/// Writes all of it, however many calls that takes. Returns 0, or what errno was: EFBIG where the process may not make
/// files so large (`ulimit -f`), of which the system would otherwise kill it by SIGXFSZ.
[[nodiscard]] int write_all(int file, std::span<const std::byte> bytes) noexcept;

}  // namespace ronda
