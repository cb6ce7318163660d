#pragma once
#include <map>
#include <string>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/layers/picker.hpp>

namespace ronda {

/// What was picked before, by question: from a plan file, or the user's cache.
using Picks = std::map<std::string, std::string, std::less<>>;

/// Picks for all ranks of a communicator. What is known is taken; anything else is timed, on all ranks at once (so that
/// no rank is timed beside idle neighbours), and what is fastest for rank 0 (time × Candidate::counts) among those that
/// every rank can run is everybody's.
class RankPicker final : public Picker {
 public:
  /// @param known      the same on all ranks
  /// @param plan_name  where a whole plan is from; then a question that `known` does not answer is an InputError: the
  ///                   plan was made for something else. Empty: what is not known is timed.
  RankPicker(Communicator communicator, Picks known, std::string plan_name, EventSink& sink);

  std::size_t pick(std::string_view question, std::span<const Candidate> candidates) override;
  [[nodiscard]] std::string known(std::string_view question) const override;

  /// Everything answered in this object's life.
  [[nodiscard]] const Picks& answered() const noexcept { return answered_; }
  /// Whether anything had to be timed.
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
