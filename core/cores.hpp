#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ronda {

/// The set of cores that a process may run on. It has room for Linux's maximum: on machines with many cores the kernel
/// refuses glibc's cpu_set_t of 1024 bits.
class CoreMask {
 public:
  static constexpr std::size_t most = 8192;

  CoreMask() = default;
  /// The cores that a process of this machine may run on; empty if they cannot be read. 0 is this process, with all
  /// cores that OpenMP may use for it (with OMP_PROC_BIND, OpenMP binds the first thread to one of them when the
  /// program is loaded).
  [[nodiscard]] static CoreMask of(int process) noexcept;
  /// The cores that OpenMP binds the threads of this process to, by OMP_PROC_BIND or OMP_PLACES; empty if it binds
  /// none.
  [[nodiscard]] static CoreMask of_openmp();
  /// Binds the calling thread, and the threads and processes that it starts later.
  void bind_thread() const noexcept;

  [[nodiscard]] bool has(std::size_t core) const noexcept { return (words_[core / bits] >> core % bits & 1) != 0; }
  [[nodiscard]] std::size_t count() const noexcept;
  /// As `count` for cores of this machine, with hyper-threads of one core counted once; `count` if they are unknown.
  [[nodiscard]] std::size_t physical() const;
  CoreMask& operator|=(const CoreMask& other) noexcept;
  /// `0-3,8`.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t bits = 8 * sizeof(unsigned long);  // as the kernel has them
  std::array<unsigned long, most / bits> words_{};
};

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
