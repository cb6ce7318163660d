#include <ronda/core/error.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/runtime/key_value/detail/served_part.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// Ages of gradients that are counted by themselves.
constexpr std::size_t counted_ages = 1024;

std::span<float> elements_in(const Buffer& buffer, std::size_t count) {
  return {reinterpret_cast<float*>(buffer.data()), count};
}

RONDA_MULTIVERSION void scale_gradient(float* sum, std::size_t count, float factor) {
  for (std::size_t i = 0; i < count; ++i) sum[i] *= factor;
}

}  // namespace

ServedPart::ServedPart(ServedTogether& together, const KeyPart& part, std::span<const float> values)
    : together_(together),
      part_(part),
      values_(Buffer::host(Buffer::aligned(values.size_bytes()))),
      published_(together.pool),
      queue_(together.options, together.open.size()) {
  const auto own = elements_in(values_, part_.count);
  std::ranges::copy(values, own.begin());
  update_ = together_.make_update(part_, own);
  for (int worker = 0; worker < together_.workers(); ++worker)
    if (!together_.open[static_cast<std::size_t>(worker)]) queue_.leave(worker);
}

// ---- events ---------------------------------------------------------------------------------------------------------

void ServedPart::push(PushedGradient gradient) {
  const Asked asked = gradient.asked;
  note_wait(asked.worker);
  const std::uint64_t round = queue_.push(std::move(gradient));
  if (!asynchronous()) {
    if (round < queue_.version()) {
      queue_.drop(asked.worker);
      ++together_.statistics.dropped;
      return together_.answers.dropped(asked);
    }
    if (round == queue_.version())
      together_.answers.done(asked);
    else
      together_.ahead.add(asked, part_.count * sizeof(float));
  }
  move_on();
}

void ServedPart::pull(const Asked& asked) {
  note_wait(asked.worker);
  waiting_pulls_.push_back(asked);
  move_on();
}

void ServedPart::worker_closed(int worker) {
  queue_.leave(worker);
  move_on();
}

void ServedPart::note_wait(int worker) {
  if (queue_.is_ahead(worker)) ++together_.statistics.waited;
}

/// Answers what need not wait. An update may let others continue. A question that fails stays unanswered.
void ServedPart::move_on() {
  while (queue_.decide(fates_)) apply();
  for (auto pull = waiting_pulls_.begin(); pull != waiting_pulls_.end();) {
    if (!queue_.may_pull(pull->worker)) {
      ++pull;
      continue;
    }
    const auto copy = published_.copy_of(elements_in(values_, part_.count));
    together_.answers.values(*pull, {copy, part_.count, queue_.version()});
    pull = waiting_pulls_.erase(pull);
  }
  if (!asynchronous()) require_possible();
}

void ServedPart::apply() {
  const std::vector<PushedGradient*> taken = queue_.taken(fates_);
  const std::uint64_t version = queue_.version();
  published_.expire();
  update_->apply(version, {mean_of(taken), part_.count});
  ++together_.statistics.updates;
  if (asynchronous()) {
    count_age(together_.statistics.staleness, version - taken.front()->version, counted_ages);
    together_.answers.done(taken.front()->asked);
  }
  queue_.advance(fates_);
  if (asynchronous()) return;
  const auto [first, end] = queue_.pushes().equal_range(queue_.version());  // gradients that are no longer ahead
  for (auto push = first; push != end; ++push)
    together_.ahead.remove(push->second.asked.worker, part_.count * sizeof(float));
}

/// In the place of the first.
const float* ServedPart::mean_of(std::span<PushedGradient* const> gradients) const {
  float* const sum = gradients.front()->elements.get();
  for (const PushedGradient* more : gradients.subspan(1)) add_floats(more->elements.get(), sum, part_.count);
  if (gradients.size() > 1) scale_gradient(sum, part_.count, 1 / static_cast<float>(gradients.size()));
  return sum;
}

// ---- questions without an answer ------------------------------------------------------------------------------------

/// Pulls wait for the round of this version to end, or for a later one.
void ServedPart::require_possible() const {
  if (waiting_pulls_.empty() || queue_.possible() >= queue_.wanted()) return;
  throw CommunicationError("update " + std::to_string(queue_.version() + 1) + " of '" + part_.key +
                           "' takes the gradients of " + std::to_string(queue_.wanted()) + " workers, and only " +
                           std::to_string(queue_.possible()) + " can come: the others have closed the store");
}

std::vector<Asked> ServedPart::take_waiting() {
  std::vector<Asked> waiting = std::exchange(waiting_pulls_, {});
  if (asynchronous())
    for (const auto& [round, push] : queue_.pushes()) waiting.push_back(push.asked);
  queue_.restart();
  return waiting;
}

Message ServedPart::why_waiting() const {
  if (asynchronous() && !queue_.pushes().empty()) return why_held(queue_.pushes().begin()->second.asked.worker);
  if (waiting_pulls_.empty()) return {};
  const int worker = waiting_pulls_.front().worker;
  return asynchronous() ? why_held(worker) : why_incomplete(worker);
}

Message ServedPart::why_held(int worker) const {
  const int slowest = queue_.slowest();
  return "worker " + std::to_string(worker) + " has pushed '" + part_.key + "' " +
         std::to_string(queue_.taken_of(worker)) + " times, and worker " + std::to_string(slowest) + " " +
         std::to_string(queue_.taken_of(slowest)) + " times (" +
         setting("max_staleness", *together_.options.max_staleness) + ")";
}

Message ServedPart::why_incomplete(int worker) const {
  std::string missing;
  for (int other = 0; other < together_.workers(); ++other)
    if (queue_.is_missing(other)) missing += (missing.empty() ? "worker " : " and ") + std::to_string(other);
  return "worker " + std::to_string(worker) + " pulls '" + part_.key + "', update " +
         std::to_string(queue_.version() + 1) + " of which takes the gradients of " + std::to_string(queue_.wanted()) +
         " workers, and " + missing + (missing.find(" and ") == std::string::npos ? " has" : " have") +
         " not pushed it";
}

}  // namespace ronda
