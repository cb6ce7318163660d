#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/rank_picker.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

namespace ronda {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The least seconds of each candidate that can run, in `best`. They run in turns, so that a disturbance does not hit
/// one alone. One that was twice as slow as another in two rounds is out; long ones, which disturbances change little,
/// have fewer rounds.
void time_in_turns(std::span<const Candidate> candidates, const std::vector<bool>& runnable,
                   std::vector<double>& best) {
  constexpr int most_rounds = 7, least_rounds = 3;
  constexpr double enough_seconds = 0.1;
  std::vector<bool> in_play = runnable;
  const auto start = Clock::now();
  for (int round = 0; round < most_rounds; ++round) {
    if (round >= least_rounds && std::chrono::duration<double>(Clock::now() - start).count() > enough_seconds) break;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (in_play[i]) best[i] = std::min(best[i], seconds_of(candidates[i].run));
    const double least = *std::min_element(best.begin(), best.end());
    if (round > 0)
      for (std::size_t i = 0; i < candidates.size(); ++i)
        if (best[i] > 2 * least) in_play[i] = false;
  }
}

}  // namespace

RankPicker::RankPicker(Communicator communicator, Picks known, std::string plan_name, EventSink& sink)
    : communicator_(std::move(communicator)), known_(std::move(known)), plan_name_(std::move(plan_name)), sink_(sink) {}

std::size_t RankPicker::pick(std::string_view question, std::span<const Candidate> candidates) {
  require_equal(communicator_, "what the ranks plan", question);
  const std::vector<bool> runnable = runnable_everywhere(candidates);
  if (const std::string name = known(question); !name.empty()) {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].name == name && runnable[i]) {
        answered_.insert_or_assign(std::string(question), candidates[i].name);
        return i;
      }
  }
  if (!plan_name_.empty())
    throw InputError(plan_name_ + ": this plan has no usable entry for '" + std::string(question) +
                     "': it was made for another model, batch, processor or library; leave " + setting("plan") +
                     " out, or name a new file");
  const std::size_t chosen = fastest(candidates, runnable);
  answered_.insert_or_assign(std::string(question), candidates[chosen].name);
  return chosen;
}

std::string RankPicker::known(std::string_view question) const {
  for (const Picks* picks : {&answered_, &known_})
    if (const auto found = picks->find(question); found != picks->end()) return found->second;
  return {};
}

std::vector<bool> RankPicker::runnable_everywhere(std::span<const Candidate> candidates) const {
  std::string mine;
  for (const auto& candidate : candidates) mine += candidate.run ? '1' : '0';
  std::vector<bool> runnable(candidates.size(), true);
  for (const auto& text : communicator_.gather_texts(mine))
    for (std::size_t i = 0; i < runnable.size(); ++i) runnable[i] = runnable[i] && text[i] == '1';
  return runnable;
}

std::size_t RankPicker::fastest(std::span<const Candidate> candidates, const std::vector<bool>& runnable) {
  const auto choices = std::count(runnable.begin(), runnable.end(), true);
  if (choices == 0) throw Error("no implementation runs on every rank's processor");
  if (choices == 1)
    return static_cast<std::size_t>(std::find(runnable.begin(), runnable.end(), true) - runnable.begin());
  if (!timed_) sink_.on_note("timing the library's primitives for this model and machine");
  timed_ = true;
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  agree(communicator_, [&] {
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (runnable[i]) candidates[i].run();  // caches and code are warm afterwards
  });
  agree(communicator_, [&] { time_in_turns(candidates, runnable, best); });
  for (std::size_t i = 0; i < candidates.size(); ++i) best[i] *= candidates[i].counts;
  const auto mine = std::min_element(best.begin(), best.end()) - best.begin();
  return std::stoul(communicator_.broadcast_text(std::to_string(mine)));
}

}  // namespace ronda
