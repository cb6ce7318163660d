#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// What can be made to go wrong, so that tests and people see what comes of it.
enum class FaultKind : std::uint8_t {
  kill,           ///< the process dies (SIGKILL) before the step
  stop,           ///< it gets SIGTERM before the step, as a cluster sends it that wants its host back
  fail_write,     ///< the disk does not take this rank's part of the first checkpoint from the step on
  kill_write,     ///< the process dies having written half of that part
  kill_rename,    ///< rank 0 dies when all parts and the manifest are written, before the rename
  flip,           ///< a bit of a parameter flips on this rank before the step
  flip_gradient,  ///< a bit of this rank's gradient of the loss flips in the step
  nan,            ///< a number of this rank's batch is none
  slow,           ///< this rank sleeps 20 ms before the step and all that follow
  slow_read,      ///< looking for a checkpoint takes rank 0 six seconds longer, where it finds one of the step or later
};

struct Fault {
  FaultKind kind;
  std::uint64_t step = 0;
  int rank = 0;
};

/// `KIND@STEP[:RANK]`, rank 0 unless given: kill@12:1. Throws InputError that lists the kinds.
[[nodiscard]] Fault parse_fault(std::string_view text);
[[nodiscard]] std::string text_of(const Fault& fault);

/// The faults of this rank, each of which happens once.
class Faults {
 public:
  Faults() = default;
  Faults(const std::vector<Fault>& faults, int rank);

  /// Those of the process: kills it or sends it a signal.
  void before_step(std::uint64_t step);
  /// Whether a fault of this kind is due at `step`, or was before and has not happened yet.
  bool happens(FaultKind kind, std::uint64_t step);

 private:
  std::vector<Fault> faults_;
};

/// The highest bit of a number's fraction: it is another number then, of the same size.
void flip_bit(float& number) noexcept;

/// As `kill -9` does.
[[noreturn]] void die_at_once() noexcept;

}  // namespace ronda
