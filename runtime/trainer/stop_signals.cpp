#include <ronda/runtime/trainer/stop_signals.hpp>

#include <atomic>

namespace ronda {
namespace {

// A handler reaches nothing but what is global.
std::atomic<bool> signalled{false}, interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void note(int signal) {
  signalled.store(true, std::memory_order_relaxed);
  if (signal != SIGINT || !interrupted.exchange(true, std::memory_order_relaxed)) return;
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);  // comes when this handler has returned
}

}  // namespace

StopSignals::StopSignals() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
}

StopSignals::~StopSignals() {
  if (received()) return;
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
}

bool StopSignals::received() const noexcept { return signalled.load(std::memory_order_relaxed); }

void StopSignals::ignore_from_now_on() const noexcept { note(0); }

}  // namespace ronda
