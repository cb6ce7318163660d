#include <ronda/collectives/host/transport/mpi_turn.hpp>

#include <thread>

namespace ronda {

MpiTurn& MpiTurn::of_process() noexcept {
  static MpiTurn turn;
  return turn;
}

MpiTurn::Lock MpiTurn::take_last() {
  while (wishes_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
  return Lock(mutex_);
}

}  // namespace ronda
