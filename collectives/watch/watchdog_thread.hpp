#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <ronda/collectives/watch/watchdog.hpp>

namespace ronda {

/// Calls a watchdog's `tick` when it is due, on a thread that takes no signals.
class WatchdogThread {
 public:
  explicit WatchdogThread(std::shared_ptr<Watchdog> watchdog);
  WatchdogThread(const WatchdogThread&) = delete;
  ~WatchdogThread() { stop(); }
  /// Ends the thread.
  void stop() noexcept;

  /// The first difference between the ranks' records; empty if there is none. Asks the other ranks, and waits for their
  /// answers: a second if some are on other hosts.
  [[nodiscard]] std::string divergence();

 private:
  void run();
  /// Waits. False if the thread is to end.
  [[nodiscard]] bool sleep(double seconds);

  const std::shared_ptr<Watchdog> watchdog_;
  std::mutex door_;
  std::condition_variable wake_;
  bool stopping_ = false;  ///< guarded by `door_`
  std::thread thread_;     ///< last: it uses all of the above
};

}  // namespace ronda
