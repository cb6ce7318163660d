#pragma once
#include <string>
#include <vector>

#include <ronda/collectives/host_names.hpp>
#include <ronda/runtime/io/cluster_file.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// Makes half of each host's ranks servers, the last ones; the smaller half of an odd number. Throws InputError if no
/// host has two ranks.
/// @param hosts  by rank
[[nodiscard]] Roles roles_beside(const HostNames& hosts);

/// Assigns a host's tasks to its ranks: chiefs and workers to the first ones, servers to the last ones. Two host names
/// match if they are equal, ignoring case, or differ only by a domain; `localhost` matches if all ranks are on one
/// host. A task whose host matches no name belongs to the host that recognises that name as its own (`own`), or, if it
/// is an address, to the host whose name this machine resolves to it. With several hosts, loopback addresses match
/// none. Throws an InputError that names a task without a rank, or a rank without a task.
/// @param hosts   by rank
/// @param source  of the tasks, for messages
/// @param own     by rank, the result of own_task_hosts there; empty: not known
[[nodiscard]] Roles roles_of_tasks(const ClusterTasks& tasks, const HostNames& hosts, const std::string& source,
                                   const std::vector<std::string>& own = {});

/// Returns the task hosts in `cluster` that this machine recognises as itself (is_this_host), one per line, to be sent
/// to all ranks, which may not know these names. Leaves out the names in `hosts`, which need no lookup. Empty if the
/// file cannot be read. Not collective.
[[nodiscard]] std::string own_task_hosts(const TrainingOptions& options, const HostNames& hosts);

/// Sets `server_ranks` of a parameter server if `servers_beside` or `cluster` requests it. Throws as the functions
/// above do, and if `server_ranks` is set to other ranks. Not collective: each rank reads the file.
/// @param hosts, own  as for roles_of_tasks
void place_servers(TrainingOptions& options, const HostNames& hosts, const std::vector<std::string>& own = {});

}  // namespace ronda
