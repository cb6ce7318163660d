#include <ronda/collectives/watch/watchdog_thread.hpp>
#include <ronda/core/clock.hpp>

#include <csignal>

#include <chrono>
#include <utility>

namespace ronda {
namespace {

/// Blocks all signals for threads that start now, except those that a thread raises itself (see RecordGuard).
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

WatchdogThread::WatchdogThread(std::shared_ptr<Watchdog> watchdog) : watchdog_(std::move(watchdog)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

void WatchdogThread::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard door(door_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void WatchdogThread::run() {
  for (double pause = watchdog_->period(); sleep(pause);) {
    const double now = watchdog_->clock().now();
    pause = watchdog_->tick(now) - now;
  }
}

bool WatchdogThread::sleep(double seconds) {
  std::unique_lock door(door_);
  return !wake_.wait_for(door, std::chrono::duration<double>(seconds), [&] { return stopping_; });
}

std::string WatchdogThread::divergence() {
  static_cast<void>(sleep(watchdog_->inquire()));
  return watchdog_->divergence();
}

}  // namespace ronda
