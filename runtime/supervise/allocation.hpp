#pragma once
#include <vector>

#include <ronda/runtime/supervise/hosts.hpp>

namespace ronda {

/// The hosts of the Slurm allocation that this process runs in, with a slot a task; none outside one. Throws InputError
/// where Slurm's variables are not what they should be.
[[nodiscard]] std::vector<Host> hosts_of_allocation();

}  // namespace ronda
