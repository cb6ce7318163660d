#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// A machine that ranks may be started on.
struct Host {
  std::string name;  ///< name for ssh and mpirun: see checked_host; IPv6 addresses without brackets
  int slots = 1;     ///< maximum number of ranks on it

  bool operator==(const Host&) const = default;
};

/// Checks a host's name, or an IPv6 address with or without brackets, and returns it for Host::name. A name has
/// letters, digits, '.', '_' and '-'. It may not begin with '-', as a command would take it for an option. Throws
/// InputError.
[[nodiscard]] std::string checked_host(std::string_view name);

/// `a:2,b`: two slots on a, one on b. An address with colons is in brackets: `[fe80::1]:2`. A host that occurs several
/// times has the slots of all its entries. At most 2^20 slots in all. Throws InputError.
[[nodiscard]] std::vector<Host> parse_hosts(std::string_view list);

/// A hostfile in a format of mpirun: one line per host, `NAME slots=N` (Open MPI, with or without blanks around '=') or
/// `NAME:N` (MPICH), or one line per slot ($PBS_NODEFILE). # begins a comment; max_slots is ignored. Throws InputError
/// with file and line.
[[nodiscard]] std::vector<Host> read_hostfile(const std::filesystem::path& path);

/// `2(x3),1`, as Slurm writes SLURM_TASKS_PER_NODE: 2, 2, 2, 1. Throws InputError.
[[nodiscard]] std::vector<int> parse_tasks_per_node(std::string_view text);

/// `a:2,b:1`, for mpirun's --host.
[[nodiscard]] std::string list_of(std::span<const Host> hosts);

[[nodiscard]] int slots_of(std::span<const Host> hosts) noexcept;

/// The hosts of the Slurm allocation of this process, with one slot per task; empty outside an allocation. Throws
/// InputError if Slurm's environment variables are malformed.
[[nodiscard]] std::vector<Host> hosts_of_allocation();

}  // namespace ronda
