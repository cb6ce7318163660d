#pragma once
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <ronda/core/clock.hpp>

namespace ronda {

/// How a thread waits for something that others do: it looks again and again, and lets others have the core when
/// nothing has come for a while: at once nearly, where ranks share cores, since then what it waits for is itself
/// waiting for the core. In a long wait it sleeps between two looks, a thirtieth of what it has waited: whoever yields
/// all the time keeps a core busy that somebody could use.
class Backoff {
 public:
  Backoff(bool oversubscribed, const Clock& clock) noexcept
      : clock_(clock), patience_(oversubscribed ? 10 : 20000), yields_for_(oversubscribed ? 1e-3 : 5e-3) {}

  void pause() noexcept {
    if (looks_ < patience_ + short_yields) {
      if (++looks_ > patience_) sched_yield();
      return;
    }
    const double time = clock_.now();
    if (looks_ == patience_ + short_yields) {
      ++looks_;
      since_ = time;
    }
    const double waited = time - since_;
    if (waited < yields_for_)
      sched_yield();
    else
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(waited / 30, longest_sleep)));
  }
  void reset() noexcept { looks_ = 0; }

 private:
  static constexpr int short_yields = 32;  ///< without looking at the clock
  static constexpr double longest_sleep = 250e-6;

  const Clock& clock_;
  int patience_;
  double yields_for_;  ///< seconds; messages from another host may take milliseconds
  int looks_ = 0;
  double since_ = 0;
};

}  // namespace ronda
