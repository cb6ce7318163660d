#include <ronda/core/error.hpp>
#include <ronda/core/repeated_memory.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

namespace ronda {
namespace {

[[noreturn]] void fail(const std::string& what, std::size_t bytes) {
  throw ResourceError("cannot " + what + " " + std::to_string(bytes) + " bytes of memory: " + std::strerror(errno));
}

/// Addresses that are given back.
std::shared_ptr<std::byte> mapped(std::size_t bytes, int protection, int flags) {
  void* const found = ::mmap(nullptr, bytes, protection, flags | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) fail("map", bytes);
  return {static_cast<std::byte*>(found), [bytes](std::byte* p) { ::munmap(p, bytes); }};
}

/// So that no step pays for the first access to a page.
void touch(const std::byte* memory, std::size_t bytes, std::size_t page) noexcept {
  for (std::size_t at = 0; at < bytes; at += page)
    static_cast<void>(*static_cast<const volatile std::byte*>(memory + at));
}

/// mremap gives shared memory a second mapping where the old length is 0: see its manual page.
void map_again(std::byte* memory, std::size_t bytes, std::byte* where) {
  if (bytes > 0 && ::mremap(memory, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, where) == MAP_FAILED)
    fail("map once more", bytes);
}

}  // namespace

std::size_t whole_pages(std::size_t bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Buffer repeat(std::byte* memory, const Repetition& repetition) {
  const auto& [period, repeated, rest] = repetition;
  if (period != whole_pages(period) || (period == 0 && repeated > 0) ||
      (rest > 0 && repeated != whole_pages(repeated)) || reinterpret_cast<std::uintptr_t>(memory) % whole_pages(1) != 0)
    throw LogicError("memory that is to be repeated does not consist of whole pages");
  if (repetition.addresses() == 0) return {};
  const std::size_t length = whole_pages(repetition.addresses());
  auto addresses = mapped(length, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE);
  std::byte* const first = addresses.get();
  for (std::size_t at = 0; at < repeated; at += period)
    map_again(memory, whole_pages(std::min(period, repeated - at)), first + at);
  map_again(memory + period, whole_pages(rest), first + repeated);
  touch(first, length, whole_pages(1));
  return {first, repetition.addresses(), Device{}, std::move(addresses)};
}

Buffer repeated_memory(const Repetition& repetition) {
  const auto memory = mapped(std::max(repetition.memory(), whole_pages(1)), PROT_READ | PROT_WRITE, MAP_SHARED);
  return repeat(memory.get(), repetition);
}

}  // namespace ronda
