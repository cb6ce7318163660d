#include "support/allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> count{0};
}

long ronda::test::allocations() { return count; }

// A sanitizer has operators of its own, which find more than these: under it nothing is counted.
#if !defined(RONDA_ADDRESS_SANITIZER) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
  ++count;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
