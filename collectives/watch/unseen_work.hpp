#pragma once
#include <string>

namespace ronda {

/// Work that waits for other ranks and that no engine moves: collectives on a device. The watchdog looks after it, on
/// its own thread, a few times a second.
class UnseenWork {
 public:
  struct Failure {
    std::string text;     ///< empty: none
    bool remote = false;  ///< it is another rank that failed, which can tell more
  };
  /// Tells the recorder what has ended, and whether this rank waits for others. Returns what failed since it began.
  virtual Failure look() noexcept = 0;
  /// The job is over: ends what is in flight, on this rank. What uses it then throws `reason`.
  virtual void give_up(const std::string& reason) noexcept = 0;

 protected:
  ~UnseenWork() = default;
};

}  // namespace ronda
