#pragma once
#include <functional>

#include <ronda/collectives/world.hpp>

namespace ronda {

/// What an application's main returns: makes the world, runs `body`, and turns whatever it throws into one message on
/// standard error (`ronda: error: …`, from the lowest rank that failed) and an exit status. An error that all ranks
/// share ends in good order: one that is agreed, and an InputError that every rank throws within a second. Any other
/// error ends the whole job at once (MPI_Abort), so that no rank waits for the one that failed.
/// Ignores SIGXFSZ from here on: where `ulimit -f` limits files, writes fail instead.
/// @param prepare  run first, without MPI: reads the command line into `WorldOptions`; what it throws is reported as
///                 well, once. May return false to end with status 0 (`--help`).
int launch(int argc, char** argv, const std::function<bool(WorldOptions&)>& prepare,
           const std::function<int(World&)>& body);
int launch(int argc, char** argv, const std::function<int(World&)>& body);

}  // namespace ronda
