#pragma once
#include <cstddef>

namespace ronda::test {

/// The most bytes that were taken from operator new at a time, beyond those taken when it was made; for programs with
/// `support/memory_peak.cpp` among their sources. 0 under a sanitizer, which has operators of its own.
class MemoryPeak {
 public:
  MemoryPeak();
  [[nodiscard]] std::size_t bytes() const;

 private:
  std::size_t before_;
};

}  // namespace ronda::test
