#pragma once
#include <cstddef>

#include <ronda/core/buffer.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/function_ref.hpp>

namespace ronda {

/// Where in a page of memory an arena begins. An update reads and writes its arenas side by side. A processor compares
/// the last 12 bits alone of what it reads with those of what it has just written, and where they agree it waits for
/// the write, so that arenas which begin at one place of a page make an update take up to twice as long (4K aliasing:
/// Intel, "64 and IA-32 Architectures Optimization Reference Manual", on memory disambiguation; AMD's do the same).
/// Gradients lie at a page's beginning, or near it.
enum class ArenaPlace : std::size_t { values = 1024, average = 1536, masters = 2048, states = 2560 };

/// The place of the optimizer's state of this number.
[[nodiscard]] constexpr ArenaPlace place_of_state(std::size_t number) noexcept {
  constexpr std::size_t apart = 512, free = 4096 - static_cast<std::size_t>(ArenaPlace::states);
  return static_cast<ArenaPlace>(static_cast<std::size_t>(ArenaPlace::states) + number * apart % free);
}

/// `bytes` of the memory that `allocate` gives, from that place of a page on. It is asked for a page more.
[[nodiscard]] Buffer allocate_arena(ArenaPlace place, std::size_t bytes, FunctionRef<Buffer(std::size_t)> allocate);

/// The same of a device's memory; that of GPUs as it comes.
[[nodiscard]] Buffer allocate_arena(ArenaPlace place, std::size_t bytes, DeviceContext& context);

}  // namespace ronda
