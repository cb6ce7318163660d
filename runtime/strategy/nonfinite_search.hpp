#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/core/host_copy.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/runtime/strategy/control_block.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

/// Computes this rank's part of a step once more and tells which ranks' loss or gradients are not finite, with the
/// first parameter that backward came to. Parameters that are not finite are named, and become 0 first, so that they
/// are not taken for the cause. Collective; the same on all ranks. The gradients are this rank's own then.
/// @param batch  of the step, on the device; null on a rank that computes nothing
/// @param step   its number
/// @param sums   scratch
[[nodiscard]] std::string explain_nonfinite(Replica& replica, const Communicator& communicator, const Batch* batch,
                                            std::uint64_t step, ControlBlock& sums, HostCopy& host);
/// The same where ranks may have different parts of the model.
/// @param compute  computes this rank's part, without reduction, tells of each gradient that is complete, and returns
///                 the sum of its losses; nothing: it has none
[[nodiscard]] std::string explain_nonfinite(Replica& replica, const Communicator& communicator, HostCopy& host,
                                            FunctionRef<std::optional<double>(const OnReady&)> compute);

}  // namespace ronda
