#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <ronda/core/clock.hpp>
#include <ronda/core/message.hpp>

namespace ronda {

/// Parses seconds from `H:M:S`, `90s`, `10m` or `1.5h`; 0 means no limit. Throws InputError.
[[nodiscard]] double parse_time_limit(std::string_view text);

/// Decides on one rank when to end cleanly and leave the rest to another run: at the user's time limit, before the end
/// of the Slurm allocation (SLURM_JOB_END_TIME), or when an application requests it. Checked before each step; a
/// request on any rank applies to all (see StepFlags::leave).
class LeaveRequest {
 public:
  /// @param time_limit  seconds from the start of the process; 0: none
  /// @param asked       returns true on a request, such as a signal; may be empty
  /// @param clock       the world's; outlives this object
  LeaveRequest(double time_limit, std::function<bool()> asked, const Clock& clock = steady_clock());

  /// Reason why SLURM_JOB_END_TIME is ignored: that time had passed when this process started, so it belongs to another
  /// allocation. Empty if it is not ignored.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// The reason for ending, for messages; empty while `due` is false.
  [[nodiscard]] Message reason(double slowest) const;
  /// @param slowest  duration in seconds of the slowest checkpoint so far, plus any other work between this call and
  ///                 the end. The training ends one minute plus twice this time before the end of the allocation; in
  ///                 short allocations at most a fifth of their time before it
  [[nodiscard]] bool due(double slowest) const { return !reason(slowest).empty(); }

 private:
  std::function<bool()> asked_;
  const Clock& clock_;
  double limit_ = std::numeric_limits<double>::infinity();           ///< time of the clock
  double allocation_end_ = std::numeric_limits<double>::infinity();  ///< time of the clock
  double longest_margin_ = 0;
  std::string note_;
};

}  // namespace ronda
