#pragma once
#include <cstddef>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>

namespace ronda {

/// Where in a page of memory an arena begins, in bytes. An update reads and writes its arenas side by side, and a
/// processor takes addresses for equal whose last 12 bits are. Where an arena that is read begins at the place of one
/// that is written, or up to some hundred bytes before it, reads wait for writes ("4K aliasing" in Intel's "64 and
/// IA-32 Architectures Optimization Reference Manual"). Measured on an EPYC with Zen 4: such an update takes up to
/// twice as long.
enum class ArenaPlace : std::size_t { gradients = 0, values = 1024, average = 1536, masters = 2048, states = 2560 };

inline constexpr std::size_t arena_page = 4096;  ///< bytes that the last 12 bits of an address count

/// The place of what lies `bytes` behind `place`: of a part of an arena.
[[nodiscard]] constexpr ArenaPlace place_behind(ArenaPlace place, std::size_t bytes) noexcept {
  return static_cast<ArenaPlace>((static_cast<std::size_t>(place) + bytes) % arena_page);
}
/// The place of what has `place` so many bytes behind it: of an arena whose part is to begin there.
[[nodiscard]] constexpr ArenaPlace place_before(ArenaPlace place, std::size_t bytes) noexcept {
  return place_behind(place, arena_page - bytes % arena_page);
}

/// The place of the optimizer's state of this number.
[[nodiscard]] constexpr ArenaPlace place_of_state(std::size_t number) noexcept {
  constexpr std::size_t apart = 512, free = arena_page - static_cast<std::size_t>(ArenaPlace::states);
  return place_behind(ArenaPlace::states, number * apart % free);
}

/// `bytes` of a device's memory, from that place of a page on, for which a page more is taken; GPUs' as it comes.
[[nodiscard]] Buffer allocate_arena(ArenaPlace place, std::size_t bytes, DeviceContext& context);

/// The same of what Communicator::allocate gives, which may be a device's. Collective, with equal `bytes`; the places
/// of the ranks may differ.
[[nodiscard]] Buffer allocate_arena(ArenaPlace place, std::size_t bytes, Communicator& communicator, Memory memory);

}  // namespace ronda
