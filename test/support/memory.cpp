#include "support/memory.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> calls{0};
std::atomic<std::size_t> taken{0}, most{0};

}  // namespace

namespace ronda::test {

long allocations() { return calls; }

MemoryPeak::MemoryPeak() : before_(taken) { most = before_; }

std::size_t MemoryPeak::bytes() const { return most - before_; }

}  // namespace ronda::test

// A sanitizer has operators of its own, which find more than these: under it nothing is counted.
#if !defined(RONDA_ADDRESS_SANITIZER) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t bytes) {
  ++calls;
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  const std::size_t now = taken += ::malloc_usable_size(memory);
  if (now > most) most = now;
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  taken -= ::malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif
