#pragma once
#include <malloc.h>

#include <cstddef>
#include <cstdint>

#include "support/sanitizer.hpp"

namespace ronda::test {

/// How often this process has called operator new so far. For programs with `support/memory.cpp` among their sources.
[[nodiscard]] long allocations();

/// The most bytes that were taken from operator new at a time, beyond those taken when it was made; for programs with
/// `support/memory.cpp` among their sources. 0 under a sanitizer, which has operators of its own.
class MemoryPeak {
 public:
  MemoryPeak();
  [[nodiscard]] std::size_t bytes() const;

 private:
  std::size_t before_;
};

/// Whether `heap_bytes` counts: under a sanitizer it does not.
[[nodiscard]] inline bool counts_heap() { return !sanitized; }

/// Bytes that the program has from the heap now, large pieces that the system gives by themselves too.
[[nodiscard]] inline std::int64_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace ronda::test
