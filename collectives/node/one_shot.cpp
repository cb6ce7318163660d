#include <ronda/collectives/node/one_shot.hpp>

#include <cstring>

namespace ronda {

OneShot::OneShot(NodeCopies copies, const Reduction& reduction)
    : copies_(std::move(copies)), barrier_(copies_.lines, copies_.rank, copies_.ranks), reduction_(reduction) {
  const std::size_t bytes = (copies_.count * size_of(copies_.dtype) + 7) / 8 * 8;
  for (BarrierLine* line : copies_.lines) {
    places_[0].push_back(line->room.data());
    places_[1].push_back(line->room.data() + bytes);
  }
}

Task OneShot::run() {
  std::byte* const own = copies_.data[static_cast<std::size_t>(copies_.rank)];
  const auto& places = places_[turn_];
  turn_ = 1 - turn_;
  const std::size_t bytes = copies_.count * size_of(copies_.dtype);
  if (bytes > 0) std::memcpy(places[static_cast<std::size_t>(copies_.rank)], own, bytes);
  barrier_.arrive();
  co_await barrier_;
  reduce_copies(reduction_, places, copies_.dtype, {0, copies_.count}, {&own, 1});
}

}  // namespace ronda
