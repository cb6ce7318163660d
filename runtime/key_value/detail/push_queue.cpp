#include <ronda/runtime/key_value/detail/push_queue.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace ronda {
namespace {

std::size_t gradients_per_update(const KeyValueOptions& options, std::size_t workers) {
  if (options.asynchronous) return 1;
  return options.replicas_to_aggregate == 0 ? workers : static_cast<std::size_t>(options.replicas_to_aggregate);
}

}  // namespace

PushQueue::PushQueue(const KeyValueOptions& options, std::size_t workers)
    : asynchronous_(options.asynchronous),
      wanted_(gradients_per_update(options, workers)),
      max_staleness_(options.max_staleness),
      workers_(workers) {}

// ---- events ---------------------------------------------------------------------------------------------------------

std::uint64_t PushQueue::push(PushedGradient push) {
  Worker& worker = of(push.asked.worker);
  const std::uint64_t round = asynchronous_ ? 0 : std::max(worker.next_round, push.version);
  if (!asynchronous_) worker.next_round = round + 1;
  if (worker.pushes++ == 0) ++pushing_;
  pushes_.emplace(round, std::move(push));
  return round;
}

void PushQueue::drop(int worker) {
  std::vector<Fate> fates(workers_.size());
  fates[static_cast<std::size_t>(worker)] = Fate::late;
  remove(std::move(fates));
}

void PushQueue::leave(int worker) {
  of(worker).open = false;
  find_fewest();
}

void PushQueue::advance(const std::vector<Fate>& fates) {
  remove(fates);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (fates[i] == Fate::taken) ++workers_[i].taken;
    if (fates[i] == Fate::idle) workers_[i].open = false;
  }
  ++version_;
  find_fewest();
}

void PushQueue::restart() {
  std::ranges::fill(workers_, Worker());
  pushes_.clear();
  version_ = pushing_ = fewest_ = 0;
}

/// Of each worker whose fate is not to wait, the earliest push.
void PushQueue::remove(std::vector<Fate> fates) {
  const auto end = pushes_.upper_bound(round());
  for (auto push = pushes_.begin(); push != end;) {
    const int worker = push->second.asked.worker;
    if (std::exchange(fates[static_cast<std::size_t>(worker)], Fate::waits) == Fate::waits) {
      ++push;
      continue;
    }
    if (--of(worker).pushes == 0) --pushing_;
    push = pushes_.erase(push);
  }
}

void PushQueue::find_fewest() {
  fewest_ = std::numeric_limits<std::uint64_t>::max();
  for (const Worker& worker : workers_)
    if (worker.open) fewest_ = std::min(fewest_, worker.taken);
}

// ---- decisions ------------------------------------------------------------------------------------------------------

bool PushQueue::decide(std::vector<Fate>& fates) const {
  fates.assign(workers_.size(), Fate::waits);
  std::size_t counted = 0;
  for (auto at = pushes_.begin(); at != pushes_.end() && at->first <= round(); ++at) {
    const auto& [its_round, push] = *at;
    Fate& fate = fates[static_cast<std::size_t>(push.asked.worker)];
    if (fate != Fate::waits) continue;  // that of an earlier push
    if (push.idle) {
      fate = Fate::idle;
    } else if (its_round < round()) {
      fate = Fate::late;
    } else if (counted < wanted_ && !is_ahead(push.asked.worker)) {
      fate = Fate::taken;
      counted += asynchronous_ || push.counts ? 1 : 0;
    }
  }
  return counted == wanted_ || (!asynchronous_ && pushing_ == workers_.size());
}

std::vector<PushedGradient*> PushQueue::taken(const std::vector<Fate>& fates) {
  std::vector<PushedGradient*> pushes(workers_.size());
  const auto end = pushes_.upper_bound(round());
  for (auto at = pushes_.begin(); at != end; ++at) {
    const auto worker = static_cast<std::size_t>(at->second.asked.worker);
    if (fates[worker] == Fate::taken && pushes[worker] == nullptr) pushes[worker] = &at->second;
  }
  std::erase(pushes, nullptr);
  return pushes;
}

bool PushQueue::is_ahead(int worker) const {
  const std::uint64_t taken = of(worker).taken;
  return max_staleness_ && taken > fewest_ && taken - fewest_ > *max_staleness_;
}

bool PushQueue::may_pull(int worker) const {
  return of(worker).open && of(worker).next_round <= version_ && !is_ahead(worker);
}

bool PushQueue::is_missing(int worker) const { return of(worker).open && of(worker).next_round <= version_; }

std::size_t PushQueue::possible() const {
  std::size_t gradients = pushes_.count(round());
  for (const Worker& worker : workers_) gradients += worker.open && worker.next_round <= version_ ? 1 : 0;
  return gradients;
}

int PushQueue::slowest() const {
  const auto slow =
      std::ranges::find_if(workers_, [&](const Worker& worker) { return worker.open && worker.taken == fewest_; });
  return static_cast<int>(slow - workers_.begin());
}

void count_age(std::vector<std::uint64_t>& ages, std::uint64_t age, std::size_t most) {
  const auto place = static_cast<std::size_t>(std::min<std::uint64_t>(age, most - 1));
  if (ages.size() <= place) ages.resize(place + 1);
  ++ages[place];
}

}  // namespace ronda
