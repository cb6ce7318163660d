#include <ronda/collectives/fabric/channel.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace ronda {

static_assert(std::is_trivially_copyable_v<FabricChannels::State>);  // it travels in messages

void FabricChannels::State::merge(std::span<std::byte> mine, std::span<const std::byte> other) noexcept {
  State merged, added;
  std::memcpy(&merged, mine.data(), sizeof merged);
  std::memcpy(&added, other.data(), sizeof added);
  merged.next = std::max(merged.next, added.next);
  merged.in_use |= added.in_use;
  std::memcpy(mine.data(), &merged, sizeof merged);
}

FabricChannels::State FabricChannels::state() const {
  const std::lock_guard door(door_);
  return state_;
}

std::vector<FabricChannel> FabricChannels::take(const State& merged, std::size_t count) {
  std::vector<FabricChannel> taken;
  std::uint64_t next = merged.next;
  for (std::size_t looked = 0; looked < most && taken.size() < count; ++looked, ++next)
    if (!merged.in_use[next % most]) taken.push_back(lease(static_cast<std::uint32_t>(next % most)));
  const std::lock_guard door(door_);
  state_.next = next;
  return taken;
}

FabricChannel FabricChannels::lease(std::uint32_t number) {
  const auto free_number = [pool = shared_from_this(), number](const void*) {
    const std::lock_guard door(pool->door_);
    pool->state_.in_use.reset(number);
  };
  FabricChannel channel(number, std::shared_ptr<const void>(this, free_number));
  const std::lock_guard door(door_);
  state_.in_use.set(number);
  return channel;
}

}  // namespace ronda
