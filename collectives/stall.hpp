#pragma once
#include <string>

namespace ronda {

/// Report of a job without progress: some ranks are late, and others have waited for them longer than the timeout.
struct Stall {
  std::string message;  ///< the collective, its step, the late ranks, the remedy; empty if another rank has them
  bool speaks = false;  ///< true only on the rank that must print its message
};

}  // namespace ronda
