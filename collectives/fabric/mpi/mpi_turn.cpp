#include <ronda/collectives/fabric/mpi/mpi.hpp>
#include <ronda/collectives/fabric/mpi/mpi_turn.hpp>

#include <algorithm>

namespace ronda {

MpiTurn& MpiTurn::of_process() noexcept {
  static MpiTurn turn;
  return turn;
}

MpiTurn::Lock MpiTurn::take_to_wait() {
  int level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  return level == MPI_THREAD_MULTIPLE ? Lock() : take();
}

MpiTurn::Want::Want(MpiTurn& turn, std::uint64_t priority) : turn_(turn), priority_(priority) {
  const std::lock_guard door(turn_.door_);
  turn_.wants_.push_back(priority_);
}

MpiTurn::Want::~Want() {
  const std::lock_guard door(turn_.door_);
  turn_.wants_.erase(std::ranges::find(turn_.wants_, priority_));
}

MpiTurn::Reservation MpiTurn::try_reserve(std::uint64_t priority) {
  const std::lock_guard door(door_);
  if (reserved_ || std::ranges::max(wants_) > priority) return Reservation(nullptr);
  reserved_ = true;
  return Reservation(this);
}

void MpiTurn::Reservation::release() noexcept {
  MpiTurn* const turn = std::exchange(turn_, nullptr);
  if (turn == nullptr) return;
  const std::lock_guard door(turn->door_);
  turn->reserved_ = false;
}

}  // namespace ronda
