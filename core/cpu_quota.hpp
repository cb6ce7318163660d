#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace ronda {

/// Processor time that a control group of Linux (a container, a job of a batch system) has for all its processes
/// together.
struct CpuQuota {
  std::uint64_t group = 0;  ///< identifies the group on this machine: equal for processes that share the quota
  double cores = 0;         ///< the quota as a number of cores

  bool operator==(const CpuQuota&) const = default;
};

/// The quotas that limit this process, innermost first: that of its control group and those of the visible parent
/// groups (version 2, cpu.max, and version 1, cpu.cfs_quota_us). Empty if no quota applies.
/// @param root  the file system's; another one for tests
[[nodiscard]] std::vector<CpuQuota> cpu_quotas(const std::filesystem::path& root = "/");

/// Whole cores that this process may use if no other process uses them: the cores of its affinity, limited by its
/// smallest quota; at least 1.
[[nodiscard]] int cores_of_process();

}  // namespace ronda
