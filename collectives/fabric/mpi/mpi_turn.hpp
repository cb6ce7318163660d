#pragma once
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <ronda/collectives/fabric/turn.hpp>

namespace ronda {

/// The turn to call MPI: one per process, for all worlds. At MPI_THREAD_SERIALIZED only one thread at a time may be
/// inside MPI. At MPI_THREAD_MULTIPLE several may, yet two threads that poll MPI at once are 24 to 34 times slower, so
/// calls that return at once take the turn there too.
class MpiTurn : public Turn {
 public:
  [[nodiscard]] static MpiTurn& of_process() noexcept;

  /// For a call that waits for other ranks inside MPI. Owns nothing at MPI_THREAD_MULTIPLE: that call may wait for
  /// anything that another thread of this process does in MPI, in another world or in the program's own calls.
  [[nodiscard]] Lock take_to_wait();

  /// The right to a call that waits for other ranks inside MPI. A process has one, as long as this object lives.
  class Reservation {
   public:
    Reservation(Reservation&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    ~Reservation() { release(); }
    [[nodiscard]] bool owns() const noexcept { return turn_ != nullptr; }
    void release() noexcept;

   private:
    friend class MpiTurn;
    explicit Reservation(MpiTurn* turn) noexcept : turn_(turn) {}
    MpiTurn* turn_;  ///< null: another world has it
  };

  /// Reserves on all ranks of a world before any of them waits inside MPI. Else two worlds would wait for each other:
  /// one has the turn on this rank and waits for the other rank, where the second world has it and waits for this one.
  /// Where two want it at once, the higher priority has it on all ranks.
  ///
  /// Collective over ranks that have come already, so that none waits for anything but this.
  /// @param priority  of the world: the same on all its ranks, another one for each world
  /// @param all       whether every rank says yes; waits without the turn
  template <class All>
  [[nodiscard]] Reservation reserve(std::uint64_t priority, All&& all) {
    const Want want(*this, priority);
    for (;;) {
      Reservation mine = try_reserve(priority);
      if (all(mine.owns())) return mine;
      mine.release();
      std::this_thread::yield();
    }
  }

 private:
  /// A world that is about to reserve; worlds of lower priority let it go first.
  class Want {
   public:
    Want(MpiTurn& turn, std::uint64_t priority);
    Want(const Want&) = delete;
    ~Want();

   private:
    MpiTurn& turn_;
    std::uint64_t priority_;
  };
  [[nodiscard]] Reservation try_reserve(std::uint64_t priority);

  std::mutex door_;  ///< guards what follows; never held for long
  bool reserved_ = false;
  std::vector<std::uint64_t> wants_;  ///< priorities
};

}  // namespace ronda
