#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/runtime/key_value/detail/part_in_rounds.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace ronda {
namespace {

RONDA_MULTIVERSION void scale_gradient(float* sum, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) sum[i] *= factor;
}

std::size_t gradients_in_a_round(const ServedTogether& together) {
  const int wanted = together.options.replicas_to_aggregate;
  return static_cast<std::size_t>(wanted == 0 ? together.workers() : wanted);
}

}  // namespace

PartInRounds::PartInRounds(ServedTogether& together, const KeyPart& part, std::span<const float> values)
    : ServedPart(together, part, values), wanted_(gradients_in_a_round(together)), next_round_(together.open.size()) {}

void PartInRounds::push(PushedGradient gradient) {
  std::uint64_t& next = next_round_[static_cast<std::size_t>(gradient.asked.worker)];
  const std::uint64_t round = std::max(next, gradient.version);
  next = round + 1;
  if (round < version()) {
    ++together().statistics.dropped;
    together().answers.dropped(gradient.asked);
    return;
  }
  if (round == version())
    together().answers.done(gradient.asked);
  else
    together().ahead.add(gradient.asked, bytes());
  rounds_[round].push_back(std::move(gradient));
  while (end_round()) answer_pulls();
  require_possible();
}

/// A round gets no more gradients than are wanted: who pushes ahead to one has pushed to the one before, and that ends
/// as soon as it has enough.
bool PartInRounds::end_round() {
  const auto round = rounds_.find(version());
  if (round == rounds_.end() || round->second.size() < wanted_) return false;
  update(mean_of(round->second));
  rounds_.erase(round);
  begin_round();
  return true;
}

/// Gradients for the round that begins are no longer pushed ahead.
void PartInRounds::begin_round() {
  const auto round = rounds_.find(version());
  if (round == rounds_.end()) return;
  for (const PushedGradient& gradient : round->second) together().ahead.remove(gradient.asked.worker, bytes());
}

const float* PartInRounds::mean_of(Gradients& gradients) const {
  std::ranges::sort(gradients, {}, [](const PushedGradient& gradient) { return gradient.asked.worker; });
  float* const sum = gradients.front().elements.get();
  for (std::size_t i = 1; i < gradients.size(); ++i) add_floats(gradients[i].elements.get(), sum, part().count);
  if (wanted_ > 1) scale_gradient(sum, part().count, 1 / static_cast<float>(wanted_));
  return sum;
}

void PartInRounds::pull(const Asked& asked) {
  waiting_pulls_.push_back(asked);
  answer_pulls();
  require_possible();
}

void PartInRounds::answer_pulls() {
  answer_each(waiting_pulls_,
              [&](const Asked& pull) { return next_round_[static_cast<std::size_t>(pull.worker)] <= version(); });
}

/// Pulls wait for the round of this version to end, or for a later one.
void PartInRounds::require_possible() const {
  if (waiting_pulls_.empty()) return;
  const auto round = rounds_.find(version());
  std::size_t possible = round == rounds_.end() ? 0 : round->second.size();
  for (std::size_t worker = 0; worker < next_round_.size(); ++worker)
    possible += together().open[worker] && next_round_[worker] <= version() ? 1 : 0;
  if (possible < wanted_)
    throw CommunicationError("update " + std::to_string(version() + 1) + " of '" + part().key +
                             "' takes the gradients of " + std::to_string(wanted_) + " workers, and only " +
                             std::to_string(possible) + " can come: the others have closed the store");
}

Message PartInRounds::why_waiting() const {
  if (waiting_pulls_.empty()) return {};
  std::string missing;
  for (std::size_t worker = 0; worker < next_round_.size(); ++worker)
    if (together().open[worker] && next_round_[worker] <= version())
      missing += (missing.empty() ? "worker " : " and ") + std::to_string(worker);
  return "worker " + std::to_string(waiting_pulls_.front().worker) + " pulls '" + part().key + "', update " +
         std::to_string(version() + 1) + " of which takes the gradients of " + std::to_string(wanted_) +
         " workers, and " + missing + (missing.find(" and ") == std::string::npos ? " has" : " have") +
         " not pushed it";
}

std::vector<Asked> PartInRounds::take_waiting() { return std::exchange(waiting_pulls_, {}); }

}  // namespace ronda
