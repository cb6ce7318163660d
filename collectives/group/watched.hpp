#pragma once
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/members/assembly.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/watchdog_thread.hpp>
#include <ronda/collectives/world.hpp>

namespace ronda {

/// This rank's record, its watchdog and the watchdog's thread; null in a world of one rank.
struct Watched {
  std::shared_ptr<Recorder> recorder;
  std::shared_ptr<Watchdog> watchdog;
  std::unique_ptr<WatchdogThread> thread;
  Ledger ledger{};             ///< of all ranks
  std::exception_ptr error{};  ///< why there is no record where one was asked for
  std::string note{};          ///< why there is none otherwise

  /// @param ranks  as far as they are known
  /// @param apart  see Recorder
  /// @param clock  the world's
  [[nodiscard]] static Watched begin(const Launcher& ranks, const WorldOptions& options, const std::string& apart = {},
                                     const Clock& clock = steady_clock());

  /// Connects the watchdogs of all ranks. Collective over `all`.
  /// @param host  the ranks of `all` that share memory with this one
  void introduce(Assembly& all, Assembly& host) const;
};

/// For the records of a world that is not the process's only one: their ranks have the same numbers.
[[nodiscard]] std::string name_apart();

}  // namespace ronda
