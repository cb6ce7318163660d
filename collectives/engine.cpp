#include <ronda/collectives/backoff.hpp>
#include <ronda/collectives/deadline.hpp>
#include <ronda/collectives/engine.hpp>
#include <ronda/collectives/planned_collective.hpp>

#include <chrono>

namespace ronda {

Engine::Engine(Progress progress, bool oversubscribed, double timeout)
    : threaded_(progress == Progress::thread), oversubscribed_(oversubscribed), timeout_(timeout) {
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
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  if (!threaded_) {
    running_.append(operation);
    poll();
    return;
  }
  {
    const std::lock_guard door(door_);
    submitted_.append(operation);
  }
  wake_.notify_one();
}

void Engine::withdraw(PlannedCollective& operation) noexcept {
  // Only a rank that fails takes out what is not done. Its thread may stand still in a blocking call for ranks that do
  // not come; then the process ends soon, and must not hang here before it has said why.
  auto turn = std::unique_lock(turn_, std::defer_lock);
  if (threaded_) static_cast<void>(turn.try_lock_for(std::chrono::seconds(1)));
  const std::lock_guard door(door_);
  if (running_.remove(operation) || submitted_.remove(operation)) in_flight_.fetch_sub(1);
}

bool Engine::poll() {
  if (threaded_ || polling_ || running_.first == nullptr) return false;
  return advance();
}

void Engine::wait(const PlannedCollective& operation, std::uint64_t ticket) {
  if (threaded_) return operation.wait_for_other_thread(ticket);
  Backoff backoff(oversubscribed_);
  Deadline deadline(timeout_);
  while (!operation.finished(ticket)) {
    if (poll()) {
      backoff.reset();
      deadline.reset();
    } else {
      stand_still(backoff, deadline);
    }
  }
}

void Engine::run_thread() {
  Backoff backoff(oversubscribed_);
  Deadline deadline(timeout_);
  for (;;) {
    {
      std::unique_lock door(door_);
      wake_.wait(door, [&] { return stopping_ || in_flight_.load() > 0; });
      if (stopping_) return;
    }
    const auto turn = take_turn();
    take_submitted();
    if (advance()) {
      backoff.reset();
      deadline.reset();
    } else {
      stand_still(backoff, deadline);
    }
  }
}

/// Nothing could be moved on. The first in flight is what the others wait behind.
void Engine::stand_still(Backoff& backoff, Deadline& deadline) {
  if (running_.first != nullptr && deadline.passed()) {
    running_.first->give_up(timeout_);
    deadline.reset();
  }
  backoff.pause();
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
    moved |= operation->advance();
    if (!operation->run_is_over()) continue;
    running_.remove(*operation);
    operation->announce();  // from here on its owner may start it again
    in_flight_.fetch_sub(1);
    in_flight_.notify_all();
  }
  polling_ = false;
  return moved;
}

void Engine::drain() {
  if (threaded_) {
    while (const std::size_t left = in_flight_.load()) in_flight_.wait(left);
    return;
  }
  Backoff backoff(oversubscribed_);
  Deadline deadline(timeout_);
  while (running_.first != nullptr) {
    if (poll()) {
      backoff.reset();
      deadline.reset();
    } else {
      stand_still(backoff, deadline);
    }
  }
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
