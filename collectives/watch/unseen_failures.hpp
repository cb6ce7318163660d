#pragma once
#include <optional>
#include <string>
#include <vector>

#include <ronda/collectives/watch/unseen_work.hpp>

namespace ronda {

/// Looks after work that no engine moves. A failure that one rank has, others soon hear of: the rank whose own it is
/// tells first, and of several the lowest.
class UnseenFailures {
 public:
  void look_after(UnseenWork& work) { works_.push_back(&work); }
  void forget(UnseenWork& work) noexcept { std::erase(works_, &work); }

  /// Looks at all of it. None: nothing has failed; empty: something has, and it is not this rank's turn to tell yet;
  /// otherwise what this rank is to tell.
  [[nodiscard]] std::optional<std::string> look(double now, int rank);
  /// The job is over, for this reason.
  void give_up(const std::string& reason) noexcept;

 private:
  std::vector<UnseenWork*> works_;
  double failed_at_ = -1;  ///< when a failure was found
};

}  // namespace ronda
