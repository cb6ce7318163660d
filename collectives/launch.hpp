#pragma once
#include <functional>

#include <ronda/collectives/world.hpp>

namespace ronda {

/// Returns an application's exit status: makes the world, runs `body`, and turns an exception into one message on
/// standard error (`ronda: error: …`, from the lowest rank that failed) and an exit status. The job ends in good order
/// after an agreed error, or an InputError that every rank throws within a second. After any other error the whole job
/// ends at once (MPI_Abort), so that no rank waits for the one that failed.
/// Ignores SIGXFSZ for the rest of the process: beyond `ulimit -f` writes fail instead.
/// @param prepare  runs first, without MPI: reads the command line into `WorldOptions`; its exceptions are reported
/// too,
///                 once. May return false to end with status 0 (`--help`).
int launch(int argc, char** argv, const std::function<bool(WorldOptions&)>& prepare,
           const std::function<int(World&)>& body);
int launch(int argc, char** argv, const std::function<int(World&)>& body);

}  // namespace ronda
