// Arenas that an update reads and writes side by side begin at different places of a page.
#include "support/catch.hpp"

#include <ronda/runtime/strategy/arena_memory.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>

namespace ronda::arena_memory_test {
namespace {

std::size_t place_in_page(const Buffer& arena) { return reinterpret_cast<std::uintptr_t>(arena.data()) % 4096; }

TEST_CASE("an arena begins at its place of a page, and all of it is there, zeroed") {
  const auto context = make_cpu_context(1);
  for (const std::size_t bytes : {std::size_t{4}, std::size_t{407'080}, (std::size_t{4} << 20) + 4})
    for (const ArenaPlace place : {ArenaPlace::values, ArenaPlace::average, ArenaPlace::masters, ArenaPlace::states}) {
      const Buffer arena = allocate_arena(place, bytes, *context);
      CHECK(place_in_page(arena) == static_cast<std::size_t>(place));
      REQUIRE(arena.bytes() == bytes);
      const std::span all(arena.data(), bytes);
      CHECK(std::ranges::all_of(all, [](std::byte byte) { return byte == std::byte{}; }));
      std::ranges::fill(all, std::byte{1});  // AddressSanitizer sees to it that this is its own
    }
  CHECK(allocate_arena(ArenaPlace::values, 0, *context).data() == nullptr);
}

TEST_CASE("what memory an arena lies in goes with the arena") {
  bool gone = false;
  auto keeper = std::shared_ptr<const void>(&gone, [&](const void*) { gone = true; });
  Buffer whole = Buffer::host(1 << 16);
  Buffer arena = allocate_arena(ArenaPlace::states, 1000, [&](std::size_t bytes) {
    return Buffer(whole.data(), bytes, whole.device(), std::move(keeper));
  });
  CHECK_FALSE(gone);
  arena = Buffer();
  CHECK(gone);
}

TEST_CASE("no two of an update's arenas begin at one place") {
  std::set<std::size_t> places{0};  // the gradients'
  for (const ArenaPlace place : {ArenaPlace::values, ArenaPlace::average, ArenaPlace::masters, place_of_state(0),
                                 place_of_state(1), place_of_state(2)})
    CHECK(places.insert(static_cast<std::size_t>(place)).second);
  for (std::size_t number = 0; number < 10; ++number) {
    const auto place = static_cast<std::size_t>(place_of_state(number));
    CHECK(place % Buffer::alignment == 0);
    CHECK(place < 4096);
  }
}

}  // namespace
}  // namespace ronda::arena_memory_test
