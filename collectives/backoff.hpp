#pragma once
#include <sched.h>

namespace ronda {

/// How a thread waits for something that others do: it looks again and again, and lets others have the core when
/// nothing has come for a while. At once nearly, where ranks share cores: then what it waits for is itself waiting for
/// the core.
class Backoff {
 public:
  explicit Backoff(bool oversubscribed) noexcept : patience_(oversubscribed ? 200 : 20000) {}

  void pause() noexcept {
    if (looks_ < patience_)
      ++looks_;
    else
      sched_yield();
  }
  void reset() noexcept { looks_ = 0; }

 private:
  int patience_;
  int looks_ = 0;
};

}  // namespace ronda
