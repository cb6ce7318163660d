#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>

namespace ronda {

/// The least number of whole pages of memory that holds `bytes`, in bytes.
[[nodiscard]] std::size_t whole_pages(std::size_t bytes) noexcept;

/// Addresses of a piece of memory, of which a part is shown again and again.
struct Repetition {
  std::size_t period = 0;    ///< bytes of memory, its first, that are shown again and again: whole pages
  std::size_t repeated = 0;  ///< bytes of addresses that show them; whole pages where there is a rest
  std::size_t rest = 0;      ///< bytes of addresses that follow, and show the memory behind the period, once

  [[nodiscard]] std::size_t addresses() const noexcept { return repeated + rest; }
  /// Bytes of memory.
  [[nodiscard]] std::size_t memory() const noexcept { return period + whole_pages(rest); }
  /// Where in the memory the byte number `address` is.
  [[nodiscard]] std::size_t place(std::size_t address) const noexcept {
    return address < repeated ? address % period : period + (address - repeated);
  }
};

/// So what is read and written in order, within a period at a time, may have addresses of its own each and take the
/// memory of one period. A period of 3, 8 repeated addresses and a rest of 2:
///
///     addresses  0 1 2 3 4 5 6 7 8 9
///     memory     0 1 2 0 1 2 0 1 3 4
///
/// The memory stays as long as what is returned, also where its other mapping goes. Page tables take 8 bytes a page of
/// addresses. A process may have 65530 mappings (vm.max_map_count); this takes one a period.
/// @param memory  of a mapping that processes may share (MAP_SHARED), from the beginning of a page on
/// Throws ResourceError.
[[nodiscard]] Buffer repeat(std::byte* memory, const Repetition& repetition);
/// The same of new, zeroed memory of this process.
[[nodiscard]] Buffer repeated_memory(const Repetition& repetition);

}  // namespace ronda
