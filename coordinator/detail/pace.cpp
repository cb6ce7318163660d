#include <ronda/coordinator/detail/pace.hpp>

#include <algorithm>

namespace ronda {
namespace {

/// A rank with nothing to do comes to a cycle so often, for others that wait for it in vain.
constexpr double resting_seconds = 5e-3;
/// Where all have something in flight, but nothing in common, cycles follow one another so fast at first, then slower.
constexpr double first_backoff = 20e-6, last_backoff = 1e-3;

}  // namespace

void CyclePace::rest(double now, bool has_work, double gather_seconds) {
  at_ = now;
  after_ring_ = 0;
  listens_ = !has_work || progress_ == Progress::none;
  if (!has_work) {
    at_ += resting_seconds;
    after_ring_ = gather_seconds;
  } else if (progress_ == Progress::some) {
    at_ += gather_seconds;
    backoff_ = first_backoff;
  } else if (progress_ == Progress::none) {
    at_ += backoff_;
    backoff_ = std::min(2 * backoff_, last_backoff);
  }
}

bool CyclePace::due(double now) {
  if (listens_ && bell_.heard()) {
    listens_ = false;
    at_ = now + after_ring_;
  }
  return now >= at_;
}

}  // namespace ronda
