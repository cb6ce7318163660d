#pragma once
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/host/transport/mpi.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/collectives/world.hpp>

namespace ronda {

/// This rank's record, and who watches it; both null for a rank alone.
struct Watched {
  std::shared_ptr<Recorder> recorder;
  std::shared_ptr<Watchdog> watchdog;
  Ledger ledger{};             ///< of all ranks
  std::exception_ptr error{};  ///< why there is no record where one was asked for
  std::string note{};          ///< why there is none otherwise

  /// @param ranks  as far as they are known
  /// @param apart  see Recorder
  [[nodiscard]] static Watched begin(const Launcher& ranks, const WorldOptions& options, const std::string& apart = {});

  /// The watchdogs of all ranks get to know each other. Collective over `all`.
  /// @param hosts  by rank
  void introduce(const mpi::Communicator& all, const HostNames& hosts) const;
};

}  // namespace ronda
