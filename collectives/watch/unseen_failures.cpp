#include <ronda/collectives/watch/unseen_failures.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// Seconds that a rank gives each lower one to tell of what failed on its device, up to so many; and that one which has
/// only heard of a failure waits longer.
constexpr double between_ranks = 0.1, hearsay = 1;
constexpr int most_turns = 10;

}  // namespace

std::optional<std::string> UnseenFailures::look(double now, int rank) {
  for (UnseenWork* work : works_) {
    UnseenWork::Failure failure = work->look();
    if (failure.text.empty()) continue;
    if (failed_at_ < 0) failed_at_ = now;
    const double turn = between_ranks * std::min(rank, most_turns) + (failure.remote ? hearsay : 0);
    return now - failed_at_ >= turn ? std::move(failure.text) : std::string();
  }
  return std::nullopt;
}

void UnseenFailures::give_up(const std::string& reason) noexcept {
  for (UnseenWork* work : works_) work->give_up(reason);
}

}  // namespace ronda
