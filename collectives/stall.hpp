#pragma once
#include <string>

namespace ronda {

/// The job stands still: some rank does not come, and others have waited for it too long.
struct Stall {
  std::string message;  ///< the collective, its step, the late ranks, the remedy; empty where another rank knows
  bool speaks = false;  ///< true on the one rank whose message it is to print
};

}  // namespace ronda
