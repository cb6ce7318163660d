#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/fabric/fabric.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/function_ref.hpp>

namespace ronda {

class Backoff;
class EngineThread;
class PlannedCollective;

/// Moves the collectives of a world along: the one place that calls the fabric in the step. `step` does the work.
/// Either the thread that waits or polls calls it (*inline*), or a thread of the engine's own (EngineThread). Engines
/// of several worlds over MPI take turns (Turn).
///
/// Operations are moved in the order in which they were submitted, and none waits inside the fabric: so a wait can be
/// given up.
///
/// What is *given up* (the watchdog says so, a message failed, its owner destroys it) leaves nothing behind. Receives
/// are taken back, or waited for where their message has begun to come. What was sent and is not yet received cannot be
/// taken back: MPI would read memory that may be gone when the other rank takes it. So the world is over then, on all
/// ranks: nobody starts anything in it any more, and what ends afterwards fails.
class Engine {
 public:
  /// Begins inline, as where ranks share cores.
  /// @param recorder  records how collectives progress; null: nothing is recorded
  /// @param watchdog  says when collectives in flight have waited long enough, and fail; null: they wait for ever
  explicit Engine(std::shared_ptr<Fabric> fabric, std::shared_ptr<Recorder> recorder = nullptr,
                  std::shared_ptr<Watchdog> watchdog = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;

  /// Called once at most, while nothing is in flight.
  /// @param progress        inline_ or thread
  /// @param oversubscribed  ranks share cores: a thread that waits gives its core away early
  void settle(Progress progress, bool oversubscribed);

  /// Seconds that others are given to hear that a collective was given up, before what it has sent may go.
  static constexpr double hearing = 0.1;
  /// Seconds that a message which has begun to come is waited for: who sends it was there.
  [[nodiscard]] double patience_with_senders() const noexcept;

  [[nodiscard]] Fabric& fabric() const noexcept { return *fabric_; }
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] Progress progress() const noexcept { return threaded_ ? Progress::thread : Progress::inline_; }

  /// Of communication, in seconds; 0: none.
  [[nodiscard]] double timeout() const noexcept { return watchdog_ == nullptr ? 0 : watchdog_->timeout(); }
  [[nodiscard]] const std::shared_ptr<Watchdog>& watchdog() const noexcept { return watchdog_; }

  /// Ends the thread, so that the fabric can be closed. What is in flight is left as it is.
  void stop() noexcept;

  /// Gives the thread up instead, where it may stand still in MPI for ever; this object must not be destroyed then.
  void leave_behind() noexcept;

  /// Throws CommunicationError, with the reason, where the world is over; LogicError where it is another thread's.
  void require_going() {
    if (is_over()) throw_over();
    if (claimed_.load(std::memory_order_relaxed) && owner_.load() != std::this_thread::get_id()) throw_claimed();
  }
  /// As long as it lives one thread alone may start anything: a Coordinator's.
  class Claim {
   public:
    explicit Claim(std::shared_ptr<Engine> engine) noexcept : engine_(std::move(engine)) {
      engine_->owner_ = std::thread::id();
      engine_->claimed_ = true;
    }
    Claim(const Claim&) = delete;
    ~Claim() { engine_->claimed_ = false; }
    /// The thread that calls this is the one.
    void here() noexcept { engine_->owner_ = std::this_thread::get_id(); }

   private:
    std::shared_ptr<Engine> engine_;
  };
  /// Starts to move `operation`, which stays where it is until it is done or withdrawn. Submitted by one
  /// thread at a time.
  void submit(PlannedCollective& operation);
  /// Takes `operation` out, whether it is done or not. One that is under way is given up; where others may need what
  /// it sends, they are given half a second to take it. What MPI still uses stays with the engine until it does no
  /// longer. False where some thread stands still inside MPI and may be using it: then it must stay where it is for
  /// good.
  [[nodiscard]] bool withdraw(PlannedCollective& operation) noexcept;
  /// Inline: moves everything on that can be; false when nothing could. With a thread of its own there is nothing to
  /// do.
  bool poll();
  /// Returns when `operation` has finished as many runs as `ticket` says.
  void wait(const PlannedCollective& operation, std::uint64_t ticket);
  /// Returns when `done`, which is asked again each time that something may have ended; it may start operations.
  void wait_until(FunctionRef<bool()> done);

  /// Moves what is in flight, without waiting. True if something moved. For the thread that drives this engine.
  bool step();
  /// Whether a thread of its own has work.
  [[nodiscard]] bool has_work() const noexcept { return in_flight_.load() > 0; }

 private:
  /// Operations one after the other, linked through themselves, so that none is ever allocated.
  struct Queue {
    PlannedCollective* first = nullptr;
    PlannedCollective* last = nullptr;
    void append(PlannedCollective& operation) noexcept;
    bool remove(PlannedCollective& operation) noexcept;
  };

  void take_submitted();
  bool advance();
  [[nodiscard]] bool must_wait(const PlannedCollective& operation) const noexcept;
  void move_or_wait(Backoff& backoff);
  bool move_in_turn();
  bool move();
  void stand_still();
  void end_run(PlannedCollective& operation);
  void end_badly(PlannedCollective& operation);
  void give_up_all(const std::string& reason) noexcept;
  void drop(PlannedCollective& operation) noexcept;
  void break_off(const std::string& what) noexcept;
  void sweep() noexcept;

  [[nodiscard]] bool is_over() const noexcept {
    return broken_.load(std::memory_order_acquire) ||
           (watchdog_ != nullptr && (watchdog_->verdict() != nullptr || recorder_->told_over()));
  }
  [[nodiscard]] std::string why_over() noexcept;
  [[noreturn]] void throw_over();
  [[noreturn]] static void throw_claimed();

  [[nodiscard]] bool takes_turns() const noexcept { return threaded_ || turn_.shared(); }
  [[nodiscard]] Turn::Lock take_turn() { return takes_turns() ? turn_.take() : Turn::Lock(); }
  [[nodiscard]] Turn::Lock take_turn_to_end() noexcept;
  [[nodiscard]] bool owns(const Turn::Lock& turn) const noexcept { return turn.owns_lock() || !takes_turns(); }

  bool threaded_ = false, oversubscribed_ = true;
  const std::shared_ptr<Fabric> fabric_;
  const std::shared_ptr<Recorder> recorder_;
  const std::shared_ptr<Watchdog> watchdog_;
  const Clock& clock_;
  unsigned looks_ = 0;    ///< in vain, since something moved
  bool polling_ = false;  ///< an operation that is being moved may ask whether another is done
  std::atomic<bool> claimed_{false};
  std::atomic<bool> broken_{false};  ///< this rank has left something behind that others must not take

  Turn& turn_;  ///< guards the fabric, `running_` and `withdrawn_`
  const Turn::User user_{turn_};
  Queue running_;
  std::vector<std::unique_ptr<Algorithm>> withdrawn_;  ///< the fabric uses their memory

  std::mutex door_;  ///< guards `submitted_`; never held for long
  Queue submitted_;

  std::atomic<std::size_t> in_flight_{0};      ///< where a thread moves them
  std::atomic<std::uint32_t> ended_runs_{0};   ///< wraps around; what waits for a run of the thread's wakes up by it
  std::atomic<bool> stands_in_fabric_{false};  ///< the turn was once waited for in vain
  std::atomic<std::thread::id> owner_{};       ///< where it is claimed
  std::string why_broken_;                     ///< written once, before `broken_`
  std::unique_ptr<EngineThread> thread_;       ///< null: inline. Last: it uses all of the above
};

}  // namespace ronda
