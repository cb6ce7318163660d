#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// A machine that ranks may be started on.
struct Host {
  std::string name;
  int slots = 1;  ///< the most ranks on it

  bool operator==(const Host&) const = default;
};

/// `a:2,b`: two slots on a, one on b. Throws InputError.
[[nodiscard]] std::vector<Host> parse_hosts(std::string_view list);

/// Open MPI's hostfile: `NAME slots=N` a line, # begins a comment. Throws InputError that names file and line.
[[nodiscard]] std::vector<Host> read_hostfile(const std::filesystem::path& path);

/// `2(x3),1`, as Slurm writes SLURM_TASKS_PER_NODE: 2, 2, 2, 1. Throws InputError.
[[nodiscard]] std::vector<int> parse_tasks_per_node(std::string_view text);

/// `a:2,b:1`, for mpirun's --host.
[[nodiscard]] std::string list_of(std::span<const Host> hosts);

[[nodiscard]] int slots_of(std::span<const Host> hosts) noexcept;

}  // namespace ronda
