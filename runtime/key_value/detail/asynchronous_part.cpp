#include <ronda/runtime/key_value/detail/asynchronous_part.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

AsynchronousPart::AsynchronousPart(ServedTogether& together, const KeyPart& part, std::span<const float> values)
    : ServedPart(together, part, values), pushes_(together.open.size()) {}

/// The open worker with the fewest pushes; `worker` if no other has fewer.
std::size_t AsynchronousPart::slowest(int worker) const {
  auto slowest = static_cast<std::size_t>(worker);
  for (std::size_t other = 0; other < pushes_.size(); ++other)
    if (together().open[other] && pushes_[other] < pushes_[slowest]) slowest = other;
  return slowest;
}

bool AsynchronousPart::is_ahead(int worker) const {
  const auto& bound = together().options.max_staleness;
  return bound && pushes_[static_cast<std::size_t>(worker)] - pushes_[slowest(worker)] > *bound;
}

void AsynchronousPart::push(PushedGradient gradient) {
  if (is_ahead(gradient.asked.worker)) ++together().statistics.waited;
  held_.push_back(std::move(gradient));
  release();
}

void AsynchronousPart::pull(const Asked& asked) {
  if (is_ahead(asked.worker)) ++together().statistics.waited;
  held_pulls_.push_back(asked);
  release();
}

void AsynchronousPart::apply(const PushedGradient& gradient) {
  auto& ages = together().statistics.staleness;
  const std::size_t age = std::min<std::size_t>(version() - gradient.version, counted_ages - 1);
  if (ages.size() <= age) ages.resize(age + 1);
  ++ages[age];
  update(gradient.elements.get());
  ++pushes_[static_cast<std::size_t>(gradient.asked.worker)];
  together().answers.done(gradient.asked);
}

/// Answers what need not wait. An update may let others go on. What is not answered, as something was thrown, stays.
void AsynchronousPart::release() {
  while (release_one()) {
  }
  answer_each(held_pulls_, [&](const Asked& pull) { return !is_ahead(pull.worker); });
}

bool AsynchronousPart::release_one() {
  const auto next = std::ranges::find_if(held_, [&](const PushedGradient& g) { return !is_ahead(g.asked.worker); });
  if (next == held_.end()) return false;
  apply(*next);
  held_.erase(next);
  return true;
}

Message AsynchronousPart::why_waiting() const {
  if (held_.empty() && held_pulls_.empty()) return {};
  const int worker = held_.empty() ? held_pulls_.front().worker : held_.front().asked.worker;
  const std::size_t slow = slowest(worker);
  return "worker " + std::to_string(worker) + " has pushed '" + part().key + "' " +
         std::to_string(pushes_[static_cast<std::size_t>(worker)]) + " times, and worker " + std::to_string(slow) +
         " " + std::to_string(pushes_[slow]) + " times (" +
         setting("max_staleness", *together().options.max_staleness) + ")";
}

std::vector<Asked> AsynchronousPart::take_waiting() {
  std::vector<Asked> waiting = std::exchange(held_pulls_, {});
  for (const PushedGradient& gradient : std::exchange(held_, {})) waiting.push_back(gradient.asked);
  return waiting;
}

}  // namespace ronda
