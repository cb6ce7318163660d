#pragma once
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace ronda {

/// Seconds of `H:M:S`, or of `90s`, `10m`, `1.5h`. Throws InputError; 0 is none.
[[nodiscard]] double parse_time_limit(std::string_view text);

/// Tells one rank when the time has come to end in good order and leave the rest for another run: the limit that the
/// user gave, the end of the Slurm allocation (SLURM_JOB_END_TIME), or what an application asks for. Asked before each
/// step; any rank's yes is all ranks' (see StepFlags::leave).
class LeaveRequest {
 public:
  /// @param time_limit  seconds from the start of the process; 0: none
  /// @param asked       signals, say; may be empty
  LeaveRequest(double time_limit, std::function<bool()> asked);

  /// Why a SLURM_JOB_END_TIME is ignored: it was over when this process started, so it is another allocation's. Empty
  /// where none is.
  [[nodiscard]] const std::string& note() const noexcept { return note_; }
  /// Why the time has come, for people; empty where it has not. Otherwise as `due`.
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
