#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ronda {

/// Seconds of `H:M:S`, or of `90s`, `10m`, `1.5h`. Throws InputError; 0 is none.
[[nodiscard]] double parse_time_limit(std::string_view text);

/// Decides on one rank when to end in good order and leave the rest for another run: at the user's time limit, before
/// the end of the Slurm allocation (SLURM_JOB_END_TIME), or when an application requests it. Asked before each step; a
/// yes on any rank counts for all (see StepFlags::leave).
class LeaveRequest {
 public:
  /// @param time_limit  seconds from the start of the process; 0: none
  /// @param asked       signals, say; may be empty
  LeaveRequest(double time_limit, std::function<bool()> asked);

  /// Why SLURM_JOB_END_TIME is ignored: it was over when this process started, so it is another allocation's. Empty if
  /// it is not ignored.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// Why the training must end, for messages; empty while `due` is false.
  [[nodiscard]] std::string reason(double slowest) const;
  /// @param slowest  seconds that the slowest checkpoint so far took, and whatever else may come between asking and the
  ///                 end. The end of an allocation is met a minute and twice that before, but in short allocations by
  ///                 at most a fifth of their time
  [[nodiscard]] bool due(double slowest) const { return !reason(slowest).empty(); }

 private:
  std::function<bool()> asked_;
  double limit_ = std::numeric_limits<double>::infinity();           ///< of the steady clock
  double allocation_end_ = std::numeric_limits<double>::infinity();  ///< likewise
  double longest_margin_ = 0;
  std::string note_;
};

}  // namespace ronda
