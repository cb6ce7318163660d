#pragma once
#include <span>
#include <string>

#include <ronda/collectives/host_names.hpp>

namespace ronda {

/// Describes the rank that the others waited for, as text. In a reduction over all ranks each waits for the last one,
/// so the rank that waited least was the last most often, and caused the extra waiting time of the others.
/// @param waited   seconds that each rank waited in reductions: for late ranks, and for the reduction itself
/// @param seconds  duration of the whole measurement
/// @param hosts    by rank
/// @param ranks    the ranks of `waited`; empty: 0, 1, ...
[[nodiscard]] std::string describe_waits(std::span<const double> waited, double seconds, const HostNames& hosts,
                                         std::span<const int> ranks = {});

}  // namespace ronda
