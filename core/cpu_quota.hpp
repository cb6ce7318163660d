#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace ronda {

/// Processor time that a control group of Linux (a container, a job of a batch system) has for all its processes
/// together.
struct CpuQuota {
  std::uint64_t group = 0;  ///< the same for the processes that share it, another for others of the same machine
  double cores = 0;         ///< as much time as so many cores have

  bool operator==(const CpuQuota&) const = default;
};

/// The quotas that this process is under, the innermost first: its control group's and those of the groups around it,
/// as far as they can be seen from here (version 2, cpu.max, and version 1, cpu.cfs_quota_us). Empty where there are
/// none.
/// @param root  the file system's; another one for tests
[[nodiscard]] std::vector<CpuQuota> cpu_quotas(const std::filesystem::path& root = "/");

/// Whole cores that this process may use if no other process uses them: the cores of its affinity, limited by its
/// smallest quota; at least 1.
[[nodiscard]] int cores_of_process();

}  // namespace ronda
