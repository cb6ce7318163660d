#pragma once
#include <functional>

#include <ronda/collectives/world.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// Creates the World and runs `body`; returns the application's exit status. An exception becomes one message on
/// standard error (`ronda: error: …`, from the lowest rank that failed) and an exit status. The job ends in an orderly
/// way after an agreed error, or after an InputError that every rank throws within a second. After any other error the
/// whole job ends at once (MPI_Abort), so that no rank waits for the failed one. Ignores SIGXFSZ for the rest of the
/// process: writes beyond `ulimit -f` fail instead.
/// @param prepare  runs first, without MPI: reads the command line into `WorldOptions`. Its exceptions are also
///                 reported, once. May return false to end with status 0 (`--help`).
/// @param names    what an error that is printed calls the settings; null: as C++ names them
int launch(int argc, char** argv, const std::function<bool(WorldOptions&)>& prepare,
           const std::function<int(World&)>& body, const SettingNames& names = nullptr);
int launch(int argc, char** argv, const std::function<int(World&)>& body);

}  // namespace ronda
