#include <ronda/runtime/trainer/stop_signals.hpp>

#include <atomic>
#include <vector>

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

StopSignals::StopSignals(Taken taken) {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  const std::vector<int> signals =
      taken == Taken::all ? std::vector{SIGTERM, SIGUSR1, SIGINT, SIGHUP} : std::vector{SIGUSR1};
  for (const int signal : signals) take(signal, action);
}

/// A signal that is ignored stays so: SIGHUP under nohup, SIGINT of a process in the background of a script.
void StopSignals::take(int signal, const struct sigaction& action) {
  struct sigaction before {};
  if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  if (sigaction(signal, &action, nullptr) == 0) before_[signal] = before;
}

StopSignals::~StopSignals() {
  if (received()) return;
  for (const auto& [signal, before] : before_) sigaction(signal, &before, nullptr);
}

bool StopSignals::received() const noexcept { return signalled.load(std::memory_order_relaxed); }

void StopSignals::ignore_from_now_on() const noexcept { note(0); }

}  // namespace ronda
