#pragma once
#include <vector>

#include <ronda/runtime/supervise/hosts.hpp>

namespace ronda {

/// The hosts of the Slurm allocation of this process, with one slot per task; empty outside an allocation. Throws
/// InputError if Slurm's environment variables are malformed.
[[nodiscard]] std::vector<Host> hosts_of_allocation();

}  // namespace ronda
