#pragma once
#include <string>
#include <vector>

#include <ronda/collectives/host_names.hpp>
#include <ronda/runtime/io/cluster_file.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// Half of each host's ranks are servers, the last ones of it; of an odd number the smaller half. Throws InputError
/// where no host has two ranks.
/// @param hosts  by rank
[[nodiscard]] Roles roles_beside(const HostNames& hosts);

/// A host's ranks take its tasks: the first ones those of chiefs and workers, the last ones those of servers. Hosts
/// have one name where they are equal, in upper or lower case, or one is the other with a domain; `localhost` is the
/// host where all ranks are on one. A task whose host is no name of these is on the one that takes it for itself; or,
/// an address, on the one that this machine finds it for by the host's name. Among several hosts no loopback address is
/// anybody's. Throws InputError that names a task without a rank, or a rank without a task.
/// @param hosts   by rank
/// @param source  of the tasks, for messages
/// @param own     by rank, what own_task_hosts has there; empty: not known
[[nodiscard]] Roles roles_of_tasks(const ClusterTasks& tasks, const HostNames& hosts, const std::string& source,
                                   const std::vector<std::string>& own = {});

/// The hosts of the tasks of `cluster` that this machine takes for itself (is_this_host), a line each: for all ranks to
/// hear, since others may not know these names. Without those that `hosts` has, which need no asking. Nothing where
/// there is no such file that can be read. Not collective.
[[nodiscard]] std::string own_task_hosts(const TrainingOptions& options, const HostNames& hosts);

/// Of a parameter server: sets `server_ranks` where `servers_beside` or `cluster` asks for that. Throws as these do,
/// and where other ones stand there. Not collective: each rank reads the file.
/// @param hosts, own  as for roles_of_tasks
void place_servers(TrainingOptions& options, const HostNames& hosts, const std::vector<std::string>& own = {});

}  // namespace ronda
