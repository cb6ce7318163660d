#pragma once
#include <cstdint>
#include <vector>

#include <ronda/runtime/checkpoint/checkpoint_options.hpp>

namespace ronda {

/// Faults of this rank; each happens once.
class Faults {
 public:
  Faults() = default;
  Faults(const std::vector<Fault>& faults, int rank);

  /// Injects the faults that kill the process or send it a signal.
  void before_step(std::uint64_t step);
  /// True if a fault of this kind is due at `step`, or was due earlier and has not happened yet.
  bool happens(FaultKind kind, std::uint64_t step);

 private:
  std::vector<Fault> faults_;
};

/// Flips the highest bit of the number's fraction: the value changes, but not its magnitude.
void flip_bit(float& number) noexcept;

/// Kills the process at once, as `kill -9` does.
[[noreturn]] void die_at_once() noexcept;

}  // namespace ronda
