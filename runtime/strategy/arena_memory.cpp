#include <ronda/runtime/strategy/arena_memory.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace ronda {

Buffer allocate_arena(ArenaPlace place, std::size_t bytes, FunctionRef<Buffer(std::size_t)> allocate) {
  constexpr std::size_t page = 4096;
  if (bytes == 0) return {};
  auto whole = std::make_shared<Buffer>(allocate(bytes + page));
  const std::size_t from = reinterpret_cast<std::uintptr_t>(whole->data()) % page,
                    offset = (static_cast<std::size_t>(place) + page - from) % page;
  std::byte* const begin = whole->data() + offset;
  const Device device = whole->device();
  return {begin, bytes, device, std::move(whole)};
}

Buffer allocate_arena(ArenaPlace place, std::size_t bytes, DeviceContext& context) {
  if (context.device().kind != DeviceKind::cpu) return context.allocate(bytes);
  return allocate_arena(place, bytes, [&](std::size_t more) { return context.allocate(more); });
}

}  // namespace ronda
