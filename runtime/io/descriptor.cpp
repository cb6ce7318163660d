#include <ronda/runtime/io/detail/descriptor.hpp>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <unistd.h>

namespace ronda {
namespace {

/// Blocks SIGXFSZ, which a write sends to its own thread, in this thread.
class SizeSignalHeld {
 public:
  SizeSignalHeld() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending{};
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~SizeSignalHeld() {
    const timespec at_once{};
    if (!was_pending_)
      while (sigtimedwait(&signal_, nullptr, &at_once) == -1 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SizeSignalHeld(const SizeSignalHeld&) = delete;
  SizeSignalHeld& operator=(const SizeSignalHeld&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace

int write_all(int file, std::span<const std::byte> bytes) noexcept {
  const SizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace ronda
