#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>

namespace ronda {

/// `bytes`, rounded up to whole pages.
[[nodiscard]] std::size_t whole_pages(std::size_t bytes) noexcept;

/// An address range that maps the first part of a memory block repeatedly.
struct Repetition {
  std::size_t period = 0;    ///< bytes at the start of the memory that are mapped repeatedly: whole pages
  std::size_t repeated = 0;  ///< bytes of addresses that map the period; whole pages if `rest` > 0
  std::size_t rest = 0;      ///< bytes of addresses after these, which map the memory after the period once

  [[nodiscard]] std::size_t addresses() const noexcept { return repeated + rest; }
  /// Bytes of memory.
  [[nodiscard]] std::size_t memory() const noexcept { return period + whole_pages(rest); }
  /// Offset in the memory of the byte at offset `address`.
  [[nodiscard]] std::size_t place(std::size_t address) const noexcept {
    return address < repeated ? address % period : period + (address - repeated);
  }
};

/// Maps memory as `repetition` describes. Data that is written and read in order, one period at a time, then has
/// distinct addresses but takes the memory of one period. A period of 3, 8 repeated addresses and a rest of 2:
///
///     addresses  0 1 2 3 4 5 6 7 8 9
///     memory     0 1 2 0 1 2 0 1 3 4
///
/// The memory lives as long as the returned buffer, even if its other mapping is removed. Page tables take 8 bytes per
/// page of addresses. A process may have 65530 mappings (vm.max_map_count); this takes one per period.
/// @param memory  start of a page in a shared mapping (MAP_SHARED)
/// Throws ResourceError.
[[nodiscard]] Buffer repeat(std::byte* memory, const Repetition& repetition);
/// The same with new, zeroed memory of this process.
[[nodiscard]] Buffer repeated_memory(const Repetition& repetition);

}  // namespace ronda
