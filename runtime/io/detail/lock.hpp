#pragma once
#include <ronda/runtime/io/file_lock.hpp>

// Private to runtime/io: not installed.
namespace ronda {

/// Locks an open file as long as it is open, without waiting.
/// @param file  a descriptor that is open for writing
[[nodiscard]] FileLock::Outcome lock_whole(int file) noexcept;

}  // namespace ronda
