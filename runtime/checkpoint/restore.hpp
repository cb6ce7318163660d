#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/state.hpp>
#include <ronda/runtime/io/checkpoint_manifest.hpp>

namespace ronda {

/// Sets `states` from the checkpoint in `folder`, whose manifest every rank has. Rank 0 reads the states that are equal
/// on all ranks and sends them to the others; each rank reads its own per-rank and averaged states. If the number of
/// ranks differs from the checkpoint's, all ranks get the mean of averaged states, and per-rank states stay unchanged.
/// Tensors and states must match in name and shape; with `partly`, those without a counterpart are skipped (for a
/// training with another optimizer). Returns one line for each kind of skipped item. States on `device` are set there
/// after all checks. Collective; throws InputError, agreed; no state that matters has been set then.
/// @param pieces  this rank's pieces of divided states, in host memory, the same names on all ranks. The checkpoint
///                stores these states whole, like those that are equal on all ranks; each rank reads the states that it
///                has a piece of
std::vector<std::string> restore(const std::filesystem::path& folder, const CheckpointManifest& manifest,
                                 std::span<const State> states, bool partly, Communicator communicator,
                                 const ComputeDevice& device = ComputeDevice::processor(),
                                 std::span<const StatePiece> pieces = {});

/// Sets a host state to rank 0's on all ranks: its bytes in memory, including padding. Float32. Collective.
void broadcast_state(const State& state, Communicator& communicator);

}  // namespace ronda
