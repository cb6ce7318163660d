#include <ronda/coordinator/detail/pace.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace ronda {
namespace {

/// A rank with nothing to do comes to a cycle so often, for others that wait for it in vain.
constexpr double resting_seconds = 5e-3;
/// Where all have something in flight, but nothing in common, cycles follow one another so fast at first, then slower.
constexpr double first_backoff = 20e-6, last_backoff = 1e-3;

}  // namespace

void CyclePace::wait(bool has_work, double gather_seconds) {
  const auto gather = [&] {
    if (gather_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(gather_seconds));
  };
  if (!has_work) {
    if (bell_.listen(resting_seconds)) gather();
  } else if (progress_ == Progress::some) {
    backoff_ = first_backoff;
    gather();
  } else if (progress_ == Progress::none) {
    bell_.listen(backoff_);
    backoff_ = std::min(2 * backoff_, last_backoff);
  }
}

}  // namespace ronda
