#pragma once
#include <span>
#include <string>

#include <ronda/collectives/host_names.hpp>

namespace ronda {

/// Whom the others waited for, in words. In a reduction that all take part in everybody waits for the last to come, so
/// the rank that waited least is the one that came last most, and what the others waited longer is its doing.
/// @param waited   seconds that each rank waited in reductions: others' lateness, and what the reduction itself takes
/// @param seconds  that all of it took
/// @param hosts    by rank
/// @param ranks    that `waited` is of; empty: 0, 1, ...
[[nodiscard]] std::string describe_waits(std::span<const double> waited, double seconds, const HostNames& hosts,
                                         std::span<const int> ranks = {});

}  // namespace ronda
