#pragma once
#include <cstdint>
#include <string>
#include <string_view>

// The values of options about checkpoints, audits and injected faults.
namespace ronda {

/// Steps or seconds between two checkpoints; if neither is set, only one at the end.
struct CheckpointInterval {
  std::uint64_t steps = 0;
  double seconds = 0;
};

/// Parses `100` (steps), `30s`, `10m`, `1.5h`. Throws InputError.
[[nodiscard]] CheckpointInterval parse_checkpoint_interval(std::string_view text);

/// Action if the replicas differ.
enum class OnDivergence : std::uint8_t {
  stop,      ///< the training fails, and reports the rank that erred
  rollback,  ///< all ranks restore the last audited copy, and continue from it
};
/// Parses stop or rollback. Throws an InputError that lists them.
[[nodiscard]] OnDivergence parse_on_divergence(std::string_view name);
[[nodiscard]] std::string_view name_of(OnDivergence choice) noexcept;

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

}  // namespace ronda
