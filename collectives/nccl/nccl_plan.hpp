#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/nccl/clique.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/parallel.hpp>

namespace ronda::nccl {

// Collectives on the memory of GPUs, planned once. The stream of the clique waits for what they are started after,
// the host does not, and the event of `start` is that stream's: waiting for it holds up a stream. A run that fails is
// told of by the watchdog, and by the next start. How long runs take is not measured.
//
// The specs are as for the host's memory, looked through and found to be the same on all ranks. `keeper` lives as long
// as the collective. Throw LogicError for what NCCL cannot reduce.

/// Whether NCCL's `op` gives something else than ours where a rank has NaN: its minimum and maximum of floating point
/// are C's fmin and fmax, which pass over it (NCCL, src/device/reduce_kernel.h).
[[nodiscard]] bool loses_nan(ReduceOp op, DType dtype) noexcept;

[[nodiscard]] std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const AllreduceSpec& spec,
                                               std::shared_ptr<const void> keeper);
[[nodiscard]] std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const BroadcastSpec& spec,
                                               std::shared_ptr<const void> keeper);
/// @param parts  of the whole, in elements, by rank; as below
[[nodiscard]] std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const AllgatherSpec& spec,
                                               std::span<const Range> parts, std::shared_ptr<const void> keeper);
[[nodiscard]] std::unique_ptr<Collective> plan(std::shared_ptr<Clique> clique, const ReduceScatterSpec& spec,
                                               std::span<const Range> parts, std::shared_ptr<const void> keeper);

/// `recording` has collectives of the clique inside, which the watchdog does not see: from where a replay begins in its
/// stream to where it ends there, it counts as one collective of the name `what`. A replay throws as `Clique::queue`.
[[nodiscard]] std::unique_ptr<Recording> watched(std::shared_ptr<Clique> clique, std::unique_ptr<Recording> recording,
                                                 const std::string& what);

}  // namespace ronda::nccl
