#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// Faults that can be injected, to test how a training reacts.
enum class FaultKind : std::uint8_t {
  kill,           ///< the process dies (SIGKILL) before the step
  stop,           ///< the process gets SIGTERM before the step, as from a cluster that reclaims its host
  fail_write,     ///< this rank's part of the first checkpoint at or after the step cannot be written
  kill_write,     ///< the process dies after writing half of that part
  kill_rename,    ///< rank 0 dies after all parts and the manifest are written, before the rename
  flip,           ///< a bit of a parameter flips on this rank before the step
  flip_gradient,  ///< a bit of this rank's gradient of the loss flips in the step
  nan,            ///< a value of this rank's batch is NaN
  slow,           ///< this rank sleeps 20 ms before this step and each later one
  slow_read,      ///< rank 0 needs six more seconds to find a checkpoint of this step or a later one
};

struct Fault {
  FaultKind kind;
  std::uint64_t step = 0;
  int rank = 0;
};

/// Parses `KIND@STEP[:RANK]`, such as kill@12:1; the default rank is 0. Throws an InputError that lists the kinds.
[[nodiscard]] Fault parse_fault(std::string_view text);
[[nodiscard]] std::string text_of(const Fault& fault);

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
