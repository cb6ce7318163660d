#pragma once
#include <array>
#include <cstddef>
#include <string>

namespace ronda {

/// Which cores of its machine a process may run on. As long as Linux's longest: the kernel of a machine with many cores
/// refuses to fill the 1024 bits of glibc's cpu_set_t.
class CoreMask {
 public:
  static constexpr std::size_t most = 8192;

  CoreMask() = default;
  /// Of a process of this machine; 0: this one. Empty where that cannot be read.
  [[nodiscard]] static CoreMask of(int process) noexcept;

  [[nodiscard]] bool has(std::size_t core) const noexcept { return (words_[core / bits] >> core % bits & 1) != 0; }
  [[nodiscard]] std::size_t count() const noexcept;
  /// Of this machine's: those that share a core's circuits (hyper-threads) count once. As `count` where it does not
  /// say.
  [[nodiscard]] std::size_t physical() const;
  CoreMask& operator|=(const CoreMask& other) noexcept;
  /// `0-3,8`.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr std::size_t bits = 8 * sizeof(unsigned long);  // as the kernel has them
  std::array<unsigned long, most / bits> words_{};
};

}  // namespace ronda
