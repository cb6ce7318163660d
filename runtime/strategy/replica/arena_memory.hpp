#pragma once
#include <cstddef>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>

namespace ronda {

/// Offset of an arena from the start of a memory page, in bytes. An update reads and writes several arenas in parallel,
/// and a processor treats addresses as equal if their last 12 bits are. If an arena that is read starts at the same
/// offset as one that is written, or up to some hundred bytes before it, reads wait for writes ("4K aliasing" in
/// Intel's "64 and IA-32 Architectures Optimization Reference Manual"). Measured on an EPYC with Zen 4: such an update
/// takes up to twice as long.
enum class ArenaPlace : std::size_t { gradients = 0, values = 1024, average = 1536, masters = 2048, states = 2560 };

inline constexpr std::size_t arena_page = 4096;  ///< bytes addressed by the last 12 bits

/// Offset of the memory `bytes` after `place`, for a part of an arena.
[[nodiscard]] constexpr ArenaPlace place_behind(ArenaPlace place, std::size_t bytes) noexcept {
  return static_cast<ArenaPlace>((static_cast<std::size_t>(place) + bytes) % arena_page);
}

/// Offset of the optimizer state with this number.
[[nodiscard]] constexpr ArenaPlace place_of_state(std::size_t number) noexcept {
  constexpr std::size_t apart = 512, free = arena_page - static_cast<std::size_t>(ArenaPlace::states);
  return place_behind(ArenaPlace::states, number * apart % free);
}

/// Allocates `bytes` of a device's memory, starting at offset `place` of a page; this needs one page more. On GPUs the
/// offset is ignored.
[[nodiscard]] Buffer allocate_arena(ArenaPlace place, std::size_t bytes, DeviceContext& context);

/// The same with memory from Communicator::allocate, which may be a device's. Collective, with equal `bytes`; the
/// ranks' places may differ.
[[nodiscard]] Buffer allocate_arena(ArenaPlace place, std::size_t bytes, Communicator& communicator, Memory memory);

}  // namespace ronda
