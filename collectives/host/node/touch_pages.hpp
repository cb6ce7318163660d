#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace ronda {

/// Reads a byte of each page, so that no step pays for this process's first access to it. Each page that a process has
/// touched costs it 8 bytes of page tables: of other ranks' memory only what is used is worth it. Other ranks may write
/// there meanwhile: what is read is not used, and ThreadSanitizer does not look.
__attribute__((no_sanitize("thread"))) inline void touch_pages(std::span<const std::byte> bytes) noexcept {
  constexpr std::uintptr_t page = 4096;
  for (std::size_t at = 0; at < bytes.size();
       at += page - (reinterpret_cast<std::uintptr_t>(bytes.data()) + at) % page)  // to where the next page begins
    static_cast<void>(*static_cast<const volatile std::byte*>(bytes.data() + at));
}

}  // namespace ronda
