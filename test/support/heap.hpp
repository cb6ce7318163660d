#pragma once
#include <malloc.h>

#include <cstdint>

#include "support/sanitizer.hpp"

namespace ronda::test {

/// Whether `heap_bytes` counts: under a sanitizer it does not.
[[nodiscard]] inline bool counts_heap() { return !sanitized; }

/// Bytes that the program has from the heap now, large pieces that the system gives by themselves too.
[[nodiscard]] inline std::int64_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace ronda::test
