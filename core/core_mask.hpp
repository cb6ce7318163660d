#pragma once
#include <array>
#include <cstddef>
#include <string>

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

}  // namespace ronda
