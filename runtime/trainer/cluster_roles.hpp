#pragma once
#include <string>

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
/// host where all ranks are on one. A task whose host is no name of these but an address is on the host that has it, as
/// this machine finds it by the host's name or its own interfaces; no loopback address. Throws InputError that names a
/// task without a rank, or a rank without a task.
/// @param hosts   by rank
/// @param source  of the tasks, for messages
[[nodiscard]] Roles roles_of_tasks(const ClusterTasks& tasks, const HostNames& hosts, const std::string& source);

/// Of a parameter server: sets `server_ranks` where `servers_beside` or `cluster` asks for that. Throws as these do,
/// and where other ones stand there. Not collective: each rank reads the file.
void place_servers(TrainingOptions& options, const HostNames& hosts);

}  // namespace ronda
