#include <ronda/collectives/watch/own_alarm.hpp>

namespace ronda {

bool OwnAlarm::watch(double now, double limit) noexcept {
  const RecordHead& head = recorder_.file().head;
  const bool waits = Recorder::get(head.still) != 0 || Recorder::get(head.inside_mpi) != 0;
  const std::uint64_t moves = Recorder::get(head.moves);
  if (!waits || moves != moves_) {
    moves_ = moves;
    since_ = now;
    if (raised_) set(false);
  }
  if (raised_ || now - since_ <= limit) return false;
  set(true);
  return true;
}

void OwnAlarm::forget(double now) noexcept {
  moves_ = Recorder::get(recorder_.file().head.moves);
  since_ = now;
  set(false);
}

}  // namespace ronda
