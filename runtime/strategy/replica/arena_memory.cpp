#include <ronda/runtime/strategy/replica/arena_memory.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace ronda {
namespace {

/// The part of `memory` from that place on; all else of it stays as long.
Buffer from_place(ArenaPlace place, std::size_t bytes, Buffer memory) {
  auto whole = std::make_shared<Buffer>(std::move(memory));
  const std::size_t here = reinterpret_cast<std::uintptr_t>(whole->data()) % arena_page,
                    offset = (static_cast<std::size_t>(place) + arena_page - here) % arena_page;
  std::byte* const begin = whole->data() + offset;
  const Device device = whole->device();
  return {begin, bytes, device, std::move(whole)};
}

}  // namespace

Buffer allocate_arena(ArenaPlace place, std::size_t bytes, DeviceContext& context) {
  if (bytes == 0 || context.device().kind != DeviceKind::cpu) return context.allocate(bytes);
  return from_place(place, bytes, context.allocate(bytes + arena_page));
}

Buffer allocate_arena(ArenaPlace place, std::size_t bytes, Communicator& communicator, Memory memory) {
  if (bytes == 0 || memory == Memory::on_device) return communicator.allocate(bytes, memory);
  return from_place(place, bytes, communicator.allocate(bytes + arena_page, memory));
}

}  // namespace ronda
