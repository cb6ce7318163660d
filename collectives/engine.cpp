#include <ronda/collectives/backoff.hpp>
#include <ronda/collectives/engine.hpp>
#include <ronda/collectives/planned_collective.hpp>

#include <chrono>

namespace ronda {

namespace {

/// Times that nothing could be moved on, after which it is worth a closer look.
constexpr unsigned vain_looks = 256;

}  // namespace

Engine::Engine(Progress progress, bool oversubscribed, std::shared_ptr<Recorder> recorder,
               std::shared_ptr<Watchdog> watchdog)
    : threaded_(progress == Progress::thread),
      oversubscribed_(oversubscribed),
      recorder_(std::move(recorder)),
      watchdog_(std::move(watchdog)) {
  if (threaded_) thread_ = std::thread([this] { run_thread(); });
}

Engine::~Engine() { stop(); }

void Engine::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard door(door_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Engine::leave_behind() noexcept {
  if (thread_.joinable()) thread_.detach();
}

void Engine::submit(PlannedCollective& operation) {
  if (!threaded_) {
    running_.append(operation);
    poll();
    return;
  }
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  {
    const std::lock_guard door(door_);
    submitted_.append(operation);
  }
  wake_.notify_one();
}

/// For who ends something. The thread may stand still in a blocking call for ranks that do not come; then the process
/// ends soon, and must not hang here, once for each thing that ends, before it has said why.
Engine::Turn Engine::take_turn_to_end() noexcept {
  Turn turn(turn_, std::defer_lock);
  if (!threaded_) return turn;
  const auto patience = std::chrono::seconds(stands_in_mpi_.load() ? 0 : 1);
  wants_turn_.fetch_add(1);
  stands_in_mpi_.store(!turn.try_lock_for(patience));
  wants_turn_.fetch_sub(1);
  return turn;
}

bool Engine::withdraw(PlannedCollective& operation) noexcept {
  const Turn turn = take_turn_to_end();
  if (!owns(turn)) return false;
  {
    const std::lock_guard door(door_);
    const bool removed = running_.remove(operation) || submitted_.remove(operation);
    if (removed && threaded_) in_flight_.fetch_sub(1);
    if (removed && recorder_ != nullptr) recorder_->moved();  // nobody waits in it any more
  }
  in_flight_.notify_all();
  operation.give_back(withdrawn_);
  return true;
}

bool Engine::poll() {
  if (threaded_ || polling_ || running_.first == nullptr) return false;
  return advance();
}

void Engine::wait(const PlannedCollective& operation, std::uint64_t ticket) {
  if (threaded_) {
    for (auto seen = ended_runs_.load(); !operation.finished(ticket); seen = ended_runs_.load()) ended_runs_.wait(seen);
    return;
  }
  Backoff backoff(oversubscribed_);
  while (!operation.finished(ticket)) move_or_wait(backoff);
}

void Engine::run_thread() {
  Backoff backoff(oversubscribed_);
  for (;;) {
    {
      std::unique_lock door(door_);
      wake_.wait(door, [&] { return stopping_ || in_flight_.load() > 0; });
      if (stopping_) return;
    }
    while (wants_turn_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
    const auto turn = take_turn();
    take_submitted();
    move_or_wait(backoff);
  }
}

void Engine::move_or_wait(Backoff& backoff) {
  if (!polling_ && running_.first != nullptr && advance()) {
    backoff.reset();
  } else {
    stand_still();
    backoff.pause();
  }
}

/// Nothing could be moved on. The first in flight is what the others wait behind.
void Engine::stand_still() {
  if (recorder_ == nullptr || running_.first == nullptr || !running_.first->waits_for_others()) return;
  recorder_->stands_still();
  if (++looks_ % vain_looks != 0) return;
  recorder_->still_alive();
  if (watchdog_ == nullptr) return;
  if (watchdog_->asked()) recorder_->waits_for(running_.first->missing());
  if (const std::string* reason = watchdog_->verdict()) running_.first->give_up(*reason);
}

void Engine::take_submitted() {
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
    if (operation->blocking() && operation != running_.first) continue;
    if (operation->blocking()) {
      const InsideMpi inside(recorder_.get());
      moved |= operation->advance();
    } else {
      moved |= operation->advance();
    }
    if (operation->run_is_over()) end_run(*operation);
  }
  polling_ = false;
  if (moved && recorder_ != nullptr) {
    recorder_->moved();
    looks_ = 0;
  }
  return moved;
}

void Engine::end_run(PlannedCollective& operation) {
  running_.remove(operation);
  operation.announce();  // from here on its owner may start it again, or destroy it
  if (!threaded_) return;
  in_flight_.fetch_sub(1);
  in_flight_.notify_all();
  ended_runs_.fetch_add(1);
  ended_runs_.notify_all();
}

void Engine::drain() {
  if (threaded_) {
    while (const std::size_t left = in_flight_.load()) in_flight_.wait(left);
    return;
  }
  Backoff backoff(oversubscribed_);
  while (running_.first != nullptr) move_or_wait(backoff);
}

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
