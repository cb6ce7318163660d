#include <ronda/collectives/watch/record_guard.hpp>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace ronda {
namespace {

constexpr std::uintptr_t page = 4096;

/// A signal's handler has nothing but what is global.
struct Mapping {
  std::atomic<void*> begin{nullptr};
  std::atomic<std::size_t> bytes{0};  ///< 0: free, or not yet in force
};
std::array<Mapping, 64> mappings;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
struct sigaction before {};        // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

bool is_of_a_record(std::uintptr_t address) noexcept {
  for (const Mapping& mapping : mappings) {
    const std::size_t bytes = mapping.bytes.load(std::memory_order_acquire);
    const auto begin = reinterpret_cast<std::uintptr_t>(mapping.begin.load(std::memory_order_acquire));
    if (address >= begin && address - begin < bytes) return true;
  }
  return false;
}

void pass_on(int signal, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(signal, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(signal);
  else
    std::signal(signal, SIG_DFL);  // the access is made again, and ends the process
}

void handle(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  void* const start = reinterpret_cast<void*>(address / page * page);  // NOLINT(performance-no-int-to-ptr)
  const bool mended =
      info->si_code == BUS_ADRERR && is_of_a_record(address) &&
      ::mmap(start, page, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == start;
  if (!mended) pass_on(signal, info, context);
  errno = error;
}

void install() noexcept {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, nullptr, &before) == 0 && ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  static_cast<void>(once);
}

}  // namespace

RecordGuard::RecordGuard(void* memory, std::size_t bytes) noexcept : memory_(memory) {
  install();
  for (Mapping& mapping : mappings) {
    void* free = nullptr;
    if (!mapping.begin.compare_exchange_strong(free, memory)) continue;
    mapping.bytes.store(bytes, std::memory_order_release);
    return;
  }
}

RecordGuard::~RecordGuard() {
  for (Mapping& mapping : mappings) {
    if (mapping.begin.load() != memory_) continue;
    mapping.bytes.store(0, std::memory_order_release);
    mapping.begin.store(nullptr, std::memory_order_release);
  }
}

}  // namespace ronda
