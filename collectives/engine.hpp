#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/collectives/world.hpp>

namespace ronda {

class Backoff;
class PlannedCollective;

/// Moves the collectives of this process along: the one place that talks to MPI in the step. Either whoever waits or
/// polls does the work (*inline*), or a thread of the engine's own, which sleeps while nothing is in flight.
///
/// Operations are moved in the order in which they were submitted. A blocking one waits until it is the first: all
/// before it are done here then, and the other ranks need nothing more of them from this one, so standing still does no
/// harm.
class Engine {
 public:
  /// @param progress        inline_ or thread
  /// @param oversubscribed  ranks share cores: give way early while waiting
  /// @param recorder        is told how things move; null: nobody is
  /// @param watchdog        says when what is in flight has waited long enough, and fails; null: it waits for ever
  Engine(Progress progress, bool oversubscribed, std::shared_ptr<Recorder> recorder = nullptr,
         std::shared_ptr<Watchdog> watchdog = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;

  [[nodiscard]] Progress progress() const noexcept { return threaded_ ? Progress::thread : Progress::inline_; }

  /// Of communication, in seconds; 0: none.
  [[nodiscard]] double timeout() const noexcept { return watchdog_ == nullptr ? 0 : watchdog_->timeout(); }
  [[nodiscard]] const std::shared_ptr<Watchdog>& watchdog() const noexcept { return watchdog_; }

  /// Ends the thread, so that MPI can be finalized. What is in flight is left as it is.
  void stop() noexcept;

  /// Gives the thread up instead, where it may stand still in MPI for ever; this object must not be destroyed then.
  void leave_behind() noexcept;

  /// Starts to move `operation`, which stays where it is until it is done or withdrawn. Submitted by one
  /// thread at a time.
  void submit(PlannedCollective& operation);
  /// Takes `operation` out, whether it is done or not, and takes its messages back. What its algorithms have stays with
  /// the engine until that ends: MPI may still write a message that had begun to come, and one that comes later must
  /// find nobody under its tag. False where the engine's thread stands still in a call and may be using it: then it
  /// must stay where it is for good.
  [[nodiscard]] bool withdraw(PlannedCollective& operation) noexcept;
  /// Runs `work`, which may free what is MPI's, while the engine's thread makes no call; false where that stands still
  /// in one.
  template <class Work>
  [[nodiscard]] bool in_turn(Work&& work) noexcept {
    const auto turn = take_turn_to_end();
    if (owns(turn)) work();
    return owns(turn);
  }
  /// Inline: moves everything on that can be; false when nothing could. With a thread of its own there is nothing to
  /// do.
  bool poll();
  /// Returns when `operation` has finished as many runs as `ticket` says.
  void wait(const PlannedCollective& operation, std::uint64_t ticket);

  /// Lets what is in flight come to its end, then runs `work`, which may call MPI, while the engine rests. All ranks do
  /// so at the same place, or the others' collectives might wait for this rank's.
  template <class Work>
  auto exclusively(Work&& work) {
    drain();
    const auto turn = take_turn();
    const InsideMpi inside(recorder_.get());
    return work();
  }

 private:
  /// Operations one after the other, linked through themselves, so that none is ever allocated.
  struct Queue {
    PlannedCollective* first = nullptr;
    PlannedCollective* last = nullptr;
    void append(PlannedCollective& operation) noexcept;
    bool remove(PlannedCollective& operation) noexcept;
  };

  void run_thread();
  void take_submitted();
  bool advance();
  void move_or_wait(Backoff& backoff);
  void stand_still();
  void drain();
  void end_run(PlannedCollective& operation);
  using Turn = std::unique_lock<std::timed_mutex>;
  [[nodiscard]] Turn take_turn() { return threaded_ ? Turn(turn_) : Turn(turn_, std::defer_lock); }
  [[nodiscard]] Turn take_turn_to_end() noexcept;
  [[nodiscard]] bool owns(const Turn& turn) const noexcept { return !threaded_ || turn.owns_lock(); }

  const bool threaded_, oversubscribed_;
  const std::shared_ptr<Recorder> recorder_;
  const std::shared_ptr<Watchdog> watchdog_;
  unsigned looks_ = 0;    ///< in vain, since something moved
  bool polling_ = false;  ///< an operation that is being moved may ask whether another is done

  std::timed_mutex turn_;           ///< guards MPI, `running_` and `withdrawn_`
  std::atomic<int> wants_turn_{0};  ///< somebody does: the thread, which takes it again and again, lets it go first
  Queue running_;
  std::vector<std::unique_ptr<Algorithm>> withdrawn_;

  std::mutex door_;  ///< guards `submitted_` and `stopping_`; never held for long
  std::condition_variable wake_;
  Queue submitted_;
  bool stopping_ = false;

  std::atomic<std::size_t> in_flight_{0};     ///< where a thread moves them
  std::atomic<std::uint32_t> ended_runs_{0};  ///< wraps around; what waits for a run of the thread's wakes up by it
  std::atomic<bool> stands_in_mpi_{false};    ///< the thread was once waited for in vain
  std::thread thread_;                        ///< last: it uses all of the above
};

}  // namespace ronda
