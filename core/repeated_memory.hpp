#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>

namespace ronda {

/// The least number of whole pages of memory that holds `bytes`, in bytes.
[[nodiscard]] std::size_t whole_pages(std::size_t bytes) noexcept;

/// `bytes` bytes of addresses that show the `period` bytes at `memory` again and again: byte i is byte i mod `period`
/// of it. So what is read and written in order, within a period at a time, may have addresses of its own each and take
/// the memory of one period:
///
///     addresses  0 1 2 3 4 5 6 7 8
///     memory     0 1 2 0 1 2 0 1 2
///
/// The memory stays as long as what is returned, also where its other mapping goes. Page tables take 8 bytes a page of
/// addresses. A process may have 65530 mappings (vm.max_map_count); this takes one a period.
/// @param memory  of a mapping that processes may share (MAP_SHARED); it and `period` are multiples of a page
/// Throws ResourceError.
[[nodiscard]] Buffer repeat(std::byte* memory, std::size_t period, std::size_t bytes);
/// The same of new, zeroed memory of this process.
[[nodiscard]] Buffer repeated_memory(std::size_t period, std::size_t bytes);

}  // namespace ronda
