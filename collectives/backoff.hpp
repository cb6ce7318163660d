#pragma once
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <ronda/runtime/core/clock.hpp>

namespace ronda {

/// How a thread waits for something that others do: it looks again and again, and lets others have the core when
/// nothing has come for a while: at once nearly, where ranks share cores, since then what it waits for is itself
/// waiting for the core. In a long wait it sleeps between two looks, a thirtieth of what it has waited: whoever yields
/// all the time keeps a core busy that somebody could use.
class Backoff {
 public:
  explicit Backoff(bool oversubscribed) noexcept
      : patience_(oversubscribed ? 200 : 20000), oversubscribed_(oversubscribed) {}

  void pause() noexcept {
    if (looks_ < patience_) {
      ++looks_;
      return;
    }
    if (looks_ == patience_) {
      ++looks_;
      since_ = steady_seconds();
    }
    const double waited = steady_seconds() - since_;
    if (waited < (oversubscribed_ ? 1e-3 : 5e-3))  // messages from another host may take milliseconds
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited / 30, longest_sleep)));
  }
  void reset() noexcept { looks_ = 0; }

 private:
  static constexpr double longest_sleep = 250e-6;

  int patience_;
  bool oversubscribed_;
  int looks_ = 0;
  double since_ = 0;
};

}  // namespace ronda
