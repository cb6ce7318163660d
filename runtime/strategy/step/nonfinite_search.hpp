#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/function_ref.hpp>
#include <ronda/layers/pass.hpp>
#include <ronda/runtime/strategy/replica/control_block.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Computes this rank's part of a step again and returns, as text, the ranks whose loss or gradients are not finite,
/// with the first such parameter in the order of backward. Parameters that are not finite are named, and set to 0
/// first, so that they do not hide the cause. Collective; the same on all ranks. The gradients are this rank's own
/// afterwards.
/// @param compute  computes this rank's part without reduction, reports each finished gradient, and returns the sum of
///                 its losses; nullopt: it has none
[[nodiscard]] std::string explain_nonfinite(Replica& replica, const Communicator& communicator, HostCopy& host,
                                            FunctionRef<std::optional<double>(const OnReady&)> compute);

}  // namespace ronda
