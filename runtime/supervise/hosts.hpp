#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// A machine that ranks may be started on.
struct Host {
  std::string name;  ///< that ssh and mpirun may be given: see checked_host; an IPv6 address without brackets
  int slots = 1;     ///< the most ranks on it

  bool operator==(const Host&) const = default;
};

/// Checks a host's name, or an IPv6 address with or without brackets, and returns it for Host::name. A name has
/// letters, digits, '.', '_' and '-'. It does not begin with '-': as a word of a command it would be an option. Throws
/// InputError.
[[nodiscard]] std::string checked_host(std::string_view name);

/// `a:2,b`: two slots on a, one on b. An address with colons is in brackets: `[fe80::1]:2`. A host that occurs several
/// times has the slots of all its entries. At most 2^20 slots in all. Throws InputError.
[[nodiscard]] std::vector<Host> parse_hosts(std::string_view list);

/// A hostfile in a format of mpirun: a line `NAME slots=N` per host (Open MPI), with or without blanks around '=',
/// `NAME:N` (MPICH), or a line per slot ($PBS_NODEFILE). # begins a comment; max_slots is read and not used. Throws
/// InputError that names file and line.
[[nodiscard]] std::vector<Host> read_hostfile(const std::filesystem::path& path);

/// `2(x3),1`, as Slurm writes SLURM_TASKS_PER_NODE: 2, 2, 2, 1. Throws InputError.
[[nodiscard]] std::vector<int> parse_tasks_per_node(std::string_view text);

/// `a:2,b:1`, for mpirun's --host.
[[nodiscard]] std::string list_of(std::span<const Host> hosts);

[[nodiscard]] int slots_of(std::span<const Host> hosts) noexcept;

}  // namespace ronda
