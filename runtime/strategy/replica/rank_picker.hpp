#pragma once
#include <map>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/layers/operation.hpp>

namespace ronda {

/// Earlier picks, by question: from a plan file or the user's cache.
using Picks = std::map<std::string, std::string, std::less<>>;

/// Picks for all ranks of a communicator. Known answers are reused. For any other question all ranks time the
/// candidates at once (so that no rank is timed next to idle neighbours); every rank then takes the candidate that is
/// fastest on rank 0 (time × Candidate::counts) among those that every rank can run.
class RankPicker final : public Picker {
 public:
  /// @param known      earlier picks, the same on all ranks
  /// @param plan_name  file that a whole plan was read from; then a question without an answer in `known` throws
  ///                   InputError, since the plan is for another model or machine. Empty: such questions are timed.
  RankPicker(Communicator communicator, Picks known, std::string plan_name, EventSink& sink);

  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override;
  [[nodiscard]] std::string known(std::string_view question) const override;

  /// All questions answered by this object.
  [[nodiscard]] const Picks& answered() const noexcept { return answered_; }
  /// True if any question had to be timed.
  [[nodiscard]] bool timed_something() const noexcept { return timed_; }

 private:
  [[nodiscard]] std::vector<bool> runnable_everywhere(std::span<const Candidate> candidates) const;
  [[nodiscard]] std::size_t fastest(std::span<const Candidate> candidates, const std::vector<bool>& runnable);

  Communicator communicator_;
  Picks known_, answered_;
  std::string plan_name_;
  bool timed_ = false;
  EventSink& sink_;
};

}  // namespace ronda
