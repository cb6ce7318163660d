#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/state_piece.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>

namespace ronda {

/// Sets `states` from the checkpoint in `folder`, whose manifest every rank has: rank 0 reads what all have alike and
/// sends it to the others; each rank reads its own of what is per rank or averaged. On another number of ranks than the
/// checkpoint's, all get the mean of what is averaged, and what is per rank stays as it is. Tensors and states have to
/// match, name for name and in shape; with `partly`, what has no counterpart is left (for a training whose optimizer is
/// another). Returns a line for each kind of thing that was left. States of `device` are set there, when all is known.
/// Collective; throws InputError, agreed; nothing is set then that matters.
/// @param pieces  of the host: this rank's of states that are divided, the same names on all ranks. The checkpoint has
///                them whole, as any others that all ranks have alike; each rank reads those that it has a piece of
std::vector<std::string> restore(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                                 std::span<const State> states, bool partly, Communicator communicator,
                                 const ComputeDevice& device = ComputeDevice::processor(),
                                 std::span<const StatePiece> pieces = {});

/// Makes a state of the host rank 0's everywhere: its bytes as they lie in memory, padding included. Float32.
/// Collective.
void broadcast_state(const State& state, Communicator& communicator);

}  // namespace ronda
