#include <ronda/collectives/host/node/one_shot.hpp>

#include <algorithm>
#include <cstddef>

namespace ronda {
namespace {

std::vector<BarrierLine*> lines_of(const NodeCopies& copies, std::size_t turn) {
  std::vector<BarrierLine*> lines = copies.lines;
  for (BarrierLine*& line : lines) line += turn;
  return lines;
}

/// Where a rank's data lies in its line: with the count if both fit one cache line, else from the next one on, so that
/// no vector of it lies in two, and its line with the count is written once only.
std::size_t offset_in_room(const NodeCopies& copies) {
  constexpr std::size_t rest_of_line = 64 - offsetof(BarrierLine, room);
  return copies.count * size_of(copies.dtype) <= rest_of_line ? 0 : rest_of_line;
}

}  // namespace

OneShot::Turn::Turn(const NodeCopies& copies, std::size_t turn)
    : lines(lines_of(copies, turn)), barrier(lines, copies.rank, copies.ranks) {
  for (BarrierLine* line : lines) places.push_back(line->room.data() + offset_in_room(copies));
}

OneShot::OneShot(NodeCopies copies, const Reduction& reduction)
    : copies_(std::move(copies)), reduction_(reduction), turns_{Turn(copies_, 0), Turn(copies_, 1)} {}

Task OneShot::run() {
  const auto rank = static_cast<std::size_t>(copies_.rank);
  std::byte* const own = copies_.data[rank];
  Turn& turn = turns_[turn_];
  turn_ = 1 - turn_;
  std::copy_n(own, copies_.count * size_of(copies_.dtype), turn.places[rank]);
  turn.barrier.arrive();
  co_await turn.barrier;
  reduce_copies(reduction_, turn.places, copies_.dtype, {0, copies_.count}, {&own, 1});
}

}  // namespace ronda
