#include <ronda/collectives/host/engine/backoff.hpp>
#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/host/engine/engine_thread.hpp>
#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <exception>

namespace ronda {

namespace {

/// Times that nothing could be moved on, after which it is worth a closer look.
constexpr unsigned vain_looks = 256;

/// Seconds that others are given to take what they have been sent by a collective that is destroyed under way.
constexpr double patience_with_receivers = 0.5;

}  // namespace

Engine::Engine(std::shared_ptr<Fabric> fabric, std::shared_ptr<Recorder> recorder, std::shared_ptr<Watchdog> watchdog)
    : fabric_(std::move(fabric)),
      recorder_(std::move(recorder)),
      watchdog_(std::move(watchdog)),
      clock_(fabric_->clock()),
      turn_(fabric_->turn()) {}

void Engine::settle(Progress progress, bool oversubscribed) {
  oversubscribed_ = oversubscribed;
  threaded_ = progress == Progress::thread;
  if (threaded_) thread_ = std::make_unique<EngineThread>(*this, oversubscribed);
}

Engine::~Engine() {
  stop();
  {
    const Turn::Lock turn = take_turn_to_end();
    if (owns(turn)) sweep();
  }
  for (auto& algorithm : withdrawn_) static_cast<void>(algorithm.release());  // the fabric still uses their memory
}

void Engine::stop() noexcept {
  if (thread_ != nullptr) thread_->stop();
}

void Engine::leave_behind() noexcept {
  if (thread_ != nullptr) thread_->leave_behind();
}

void Engine::submit(PlannedCollective& operation) {
  if (!threaded_) {
    running_.append(operation);
    if (polling_) return;
    const auto turn = take_turn();
    advance();
    return;
  }
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard door(door_);
    submitted_.append(operation);
  }
  thread_->wake();
}

bool Engine::poll() {
  if (threaded_ || polling_ || running_.first == nullptr) return false;
  const auto turn = take_turn();
  return advance();
}

void Engine::wait(const PlannedCollective& operation, std::uint64_t ticket) {
  if (threaded_) {
    for (auto seen = ended_runs_.load(); !operation.finished(ticket); seen = ended_runs_.load()) ended_runs_.wait(seen);
    return;
  }
  Backoff backoff(oversubscribed_, clock_);
  while (!operation.finished(ticket)) move_or_wait(backoff);
}

void Engine::wait_until(FunctionRef<bool()> done) {
  if (threaded_) {
    for (auto seen = ended_runs_.load(); !done(); seen = ended_runs_.load()) ended_runs_.wait(seen);
    return;
  }
  Backoff backoff(oversubscribed_, clock_);
  while (!done()) move_or_wait(backoff);
}

/// Inlined: a rank that waits does nothing else, and a shorter look finds a message earlier.
[[gnu::always_inline]] inline bool Engine::move() {
  if (!polling_ && running_.first != nullptr && advance()) return true;
  stand_still();
  return false;
}

bool Engine::step() { return takes_turns() ? move_in_turn() : move(); }

void Engine::move_or_wait(Backoff& backoff) {
  if (step())
    backoff.reset();
  else
    backoff.pause();
}

bool Engine::move_in_turn() {
  const auto turn = threaded_ ? turn_.take_last() : take_turn();
  if (threaded_) take_submitted();
  return move();
}

/// Nothing could be moved on. The first in flight is what the others wait behind.
void Engine::stand_still() {
  if (recorder_ == nullptr || running_.first == nullptr || !running_.first->waits_for_others()) return;
  recorder_->stands_still();
  if (++looks_ % vain_looks != 0) return;
  recorder_->still_alive();
  if (watchdog_ == nullptr) return;
  if (watchdog_->asked()) recorder_->waits_for(running_.first->missing());
  if (const std::string* reason = watchdog_->verdict()) give_up_all(*reason);
}

void Engine::take_submitted() {
  if (!withdrawn_.empty()) sweep();
  const std::lock_guard door(door_);
  while (PlannedCollective* operation = submitted_.first) {
    submitted_.remove(*operation);
    running_.append(*operation);
  }
}

bool Engine::advance() {
  polling_ = true;
  bool moved = false;
  PlannedCollective* next = nullptr;
  for (PlannedCollective* operation = running_.first; operation != nullptr; operation = next) {
    next = operation->next_;
    if (operation->in_order() && must_wait(*operation)) continue;
    moved |= operation->advance();
    if (operation->run_is_over()) end_run(*operation);
  }
  polling_ = false;
  if (moved && recorder_ != nullptr) {
    recorder_->moved();
    looks_ = 0;
  }
  return moved;
}

/// An operation that goes in order waits until those before it in its group are done.
bool Engine::must_wait(const PlannedCollective& operation) const noexcept {
  for (const PlannedCollective* before = running_.first; before != &operation; before = before->next_)
    if (before->in_order() && before->is_of_the_group_of(operation)) return true;
  return false;
}

void Engine::end_run(PlannedCollective& operation) {
  running_.remove(operation);
  if (operation.failed() || is_over()) end_badly(operation);
  operation.announce();  // from here on its owner may start it again, or destroy it
  if (!threaded_) return;
  in_flight_.fetch_sub(1);
  ended_runs_.fetch_add(1);
  ended_runs_.notify_all();
}

// ---- giving up ------------------------------------------------------------------------------------------------------

/// It failed, or the world is over: then what came may be of memory that was gone.
void Engine::end_badly(PlannedCollective& operation) {
  if (!operation.failed())
    operation.spoil(why_over());
  else if (operation.open().sends)
    break_off(operation.label() + " failed");
}

void Engine::give_up_all(const std::string& reason) noexcept {
  for (PlannedCollective* operation = running_.first; operation != nullptr; operation = operation->next_)
    operation->give_up(std::make_exception_ptr(CommunicationError(reason)));
}

/// For who ends something. Some thread may stand still inside the fabric; then the process ends soon, and must not hang
/// here, once for each thing that ends, before it has said why.
Turn::Lock Engine::take_turn_to_end() noexcept {
  if (!takes_turns()) return {};
  auto turn = turn_.take_within(std::chrono::milliseconds(stands_in_fabric_.load() ? 0 : 1000));
  stands_in_fabric_.store(!turn.owns_lock());
  return turn;
}

bool Engine::withdraw(PlannedCollective& operation) noexcept {
  const Turn::Lock turn = take_turn_to_end();
  if (!owns(turn)) return false;
  {
    const std::lock_guard door(door_);
    const bool removed = running_.remove(operation) || submitted_.remove(operation);
    if (removed && threaded_) in_flight_.fetch_sub(1);
    if (removed && recorder_ != nullptr) recorder_->moved();  // nobody waits in it any more
  }
  drop(operation);
  operation.give_back(withdrawn_);
  sweep();
  return true;
}

/// Its tensors' memory may be gone when this returns.
void Engine::drop(PlannedCollective& operation) noexcept {
  const bool unwinding = std::uncaught_exceptions() > 0;  // then who is to hear why has an error to tell first
  const bool gives_up = !operation.failed();
  const auto wait_until = [&](double seconds, auto&& enough) {
    const double end = clock_.now() + seconds;
    Backoff backoff(true, clock_);
    while (!enough() && clock_.now() < end) backoff.pause();
  };
  if (gives_up && !unwinding && !is_over())
    wait_until(patience_with_receivers, [&] {
      static_cast<void>(operation.advance());
      return operation.run_is_over() || !operation.open().sends;
    });
  if (operation.run_is_over() && !operation.failed()) return;
  if (gives_up) operation.give_up(nullptr);
  wait_until(patience_with_senders(), [&] { return !operation.open().receives; });
  if (!operation.open().sends || !gives_up) return;
  break_off(operation.label() + " was destroyed");
  if (unwinding || watchdog_ == nullptr) return;
  watchdog_->end("rank " + std::to_string(recorder_->file().head.rank) + ": " + why_over());
  wait_until(hearing, [] { return false; });
}

double Engine::patience_with_senders() const noexcept { return std::max(timeout(), 1.0); }

/// From here on nothing is started.
void Engine::break_off(const std::string& what) noexcept {
  if (is_over()) return;
  why_broken_ = what + " while its messages were under way, and other ranks must not take them any more";
  broken_.store(true, std::memory_order_release);
}

void Engine::sweep() noexcept {
  std::erase_if(withdrawn_, [](const auto& algorithm) { return open_of(*algorithm).nothing(); });
}

std::string Engine::why_over() noexcept {
  if (broken_.load(std::memory_order_acquire)) return why_broken_;
  const double end = clock_.now() + 1;
  while (watchdog_->verdict() == nullptr && clock_.now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::string* verdict = watchdog_->verdict();
  return verdict != nullptr ? *verdict : "another rank has ended the job, and says why";
}

void Engine::throw_claimed() {
  throw LogicError(
      "this communicator's world is a coordinator's as long as that is open: hand tensors to the coordinator, close it "
      "first, or give it a World of its own");
}

void Engine::throw_over() { throw CommunicationError(why_over()); }

void Engine::Queue::append(PlannedCollective& operation) noexcept {
  operation.next_ = nullptr;
  (last == nullptr ? first : last->next_) = &operation;
  last = &operation;
}

bool Engine::Queue::remove(PlannedCollective& operation) noexcept {
  PlannedCollective* before = nullptr;
  for (PlannedCollective* at = first; at != nullptr; before = at, at = at->next_) {
    if (at != &operation) continue;
    (before == nullptr ? first : before->next_) = operation.next_;
    if (last == &operation) last = before;
    operation.next_ = nullptr;
    return true;
  }
  return false;
}

}  // namespace ronda
