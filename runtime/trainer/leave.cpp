#include <ronda/core/clock.hpp>
#include <ronda/core/text.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/runtime/trainer/leave.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace ronda {
namespace {

constexpr const char* end_variable = "SLURM_JOB_END_TIME";

/// Seconds until this process's Slurm allocation ends.
std::optional<double> allocation_left() {
  const char* text = std::getenv(end_variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const double time = read_number(text, &end);  // seconds since 1970
  if (*end != '\0' || !(time > 0)) return std::nullopt;
  return time - std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

double parse_time_limit(std::string_view text) {
  if (const auto seconds = parse_duration(text)) return *seconds;
  const InputError bad("a time limit is H:M:S, or 30s, 10m, 1h; '" + std::string(text) + "' is none");
  double total = 0;
  for (int field = 0; field < 3; ++field) {
    unsigned number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
    if (parsed.ec != std::errc() || number > 1'000'000 || (field > 0 && number > 59)) throw bad;
    if (field == 2 ? !text.empty() : !text.starts_with(':')) throw bad;
    if (field < 2) text.remove_prefix(1);
    total = total * 60 + number;
  }
  if (total == 0) throw bad;
  return total;
}

LeaveRequest::LeaveRequest(double time_limit, std::function<bool()> asked, const Clock& clock)
    : asked_(std::move(asked)), clock_(clock) {
  const double now = clock_.now();
  if (time_limit > 0) limit_ = now - seconds_since_process_start() + time_limit;
  const auto left = allocation_left();
  if (left && *left + seconds_since_process_start() <= 0)
    note_ = std::string(end_variable) + "=" + std::getenv(end_variable) +
            " was over when this process started: a leftover of another allocation, and ignored; unset it";
  else if (left) {
    allocation_end_ = now + *left;
    longest_margin_ = std::max(*left, 0.0) / 5;
  }
}

Message LeaveRequest::reason(double slowest) const {
  if (asked_ && asked_()) return "a signal or the program asked for it";
  const double now = clock_.now(), margin = std::min(60 + 2 * slowest, longest_margin_);
  if (now >= limit_) return "the time limit (" + setting("time_limit") + ") is over";
  if (now >= allocation_end_ - margin) return std::string("the Slurm allocation ends soon (") + end_variable + ")";
  return {};
}

}  // namespace ronda
