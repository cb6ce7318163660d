#include <ronda/collectives/host/engine/planned_collective.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace ronda {

PlannedCollective::PlannedCollective(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<Algorithm>> algorithms,
                                     std::string_view name, const Description& description, Ledger& ledger,
                                     std::shared_ptr<const void> keeper, Compression compression)
    : keeper_(std::move(keeper)),
      engine_(std::move(engine)),
      algorithms_(std::move(algorithms)),
      name_(name),
      description_(description),
      ledger_(ledger),
      compression_(compression),
      in_order_(std::ranges::any_of(algorithms_, [](const auto& a) { return a->in_order(); })) {
  tasks_.reserve(algorithms_.size());
  for (const auto& algorithm : algorithms_) algorithm->prepare();
}

void PlannedCollective::operator delete(PlannedCollective* self, std::destroying_delete_t) noexcept {
  const bool whole = self->finished(self->started_) && !self->failure_;
  if (!whole && !self->engine_->withdraw(*self)) return;
  self->~PlannedCollective();
  static_assert(alignof(PlannedCollective) > __STDCPP_DEFAULT_NEW_ALIGNMENT__);  // so it came from the aligned new
  ::operator delete (self, std::align_val_t{alignof(PlannedCollective)});
}

Event PlannedCollective::start(const Event& ready) {
  if (!finished(started_)) throw LogicError(description_.label + " was started again before it was done");
  if (failure_) std::rethrow_exception(failure_);
  if (algorithms_.empty()) return ready;
  engine_->require_going();
  ++started_;
  ready_ = ready;
  waiting_for_ready_ = true;
  record_ = ledger_.begin(description_);
  for (const auto& algorithm : algorithms_) tasks_.push_back(algorithm->run());
  engine_->submit(*this);
  return {*this, started_};
}

std::size_t PlannedCollective::memory() const noexcept {
  std::size_t bytes = 0;
  for (const auto& algorithm : algorithms_) bytes += algorithm->memory();
  return bytes;
}

std::uint64_t PlannedCollective::sent_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& algorithm : algorithms_) {
    std::uint64_t messages = algorithm->sent_bytes();
    if (messages == 0) algorithm->visit_traffic([&](const Traffic& traffic) { messages += traffic.sent_bytes(); });
    bytes += messages;
  }
  return bytes;
}

void PlannedCollective::visit(StateVisitor& visitor) {
  for (std::size_t i = 0; i < algorithms_.size(); ++i)
    algorithms_[i]->visit(i == 0 ? description_.label : description_.label + "." + std::to_string(i), visitor);
}

bool PlannedCollective::poll(std::uint64_t ticket) {
  if (!finished(ticket)) engine_->poll();
  if (!finished(ticket)) return false;
  if (failure_) std::rethrow_exception(failure_);
  return true;
}

void PlannedCollective::wait(std::uint64_t ticket) {
  engine_->wait(*this, ticket);
  if (failure_) std::rethrow_exception(failure_);
}

bool PlannedCollective::advance() noexcept {
  if (tasks_.empty()) return settle();  // it failed
  bool moved = false;
  try {
    if (waiting_for_ready_ && !ready_.ready()) return false;
    if (std::exchange(waiting_for_ready_, false) && timed()) began_ = engine_->fabric().seconds();
    for (std::size_t i = 0; i < tasks_.size();) {
      moved |=
          DenormalScope::in_flushing_scope() == flushes_denormals_ ? tasks_[i].advance() : advance_in_scope(tasks_[i]);
      if (!tasks_[i].done()) {
        ++i;
        continue;
      }
      tasks_[i].result();
      tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  } catch (const CommunicationError& error) {  // MPI's own words do not say where
    give_up(std::make_exception_ptr(CommunicationError(description_.label + " by " + name_ + ": " + error.message())));
    return true;
  } catch (...) {
    give_up(std::current_exception());
    return true;
  }
  return moved;
}

bool PlannedCollective::advance_in_scope(Task& task) const {
  const DenormalScope arithmetic(flushes_denormals_);
  return task.advance();
}

void PlannedCollective::give_up(std::exception_ptr failure) noexcept {
  if (failed()) return;
  failure_ = failure ? std::move(failure) : std::make_exception_ptr(LogicError(description_.label + " is gone"));
  failed_at_ = engine_->clock().now();
  tasks_.clear();
  for (const auto& algorithm : algorithms_) algorithm->visit_traffic([](Traffic& traffic) { traffic.take_back(); });
}

void PlannedCollective::spoil(const std::string& reason) noexcept {
  failure_ = std::make_exception_ptr(CommunicationError(reason));
  quiet_ = true;
}

/// Until what has begun to come is here, and those who may take what was sent know that it was given up.
bool PlannedCollective::settle() noexcept {
  if (quiet_) return false;
  const Traffic::Open now = open();
  const double waited = engine_->clock().now() - failed_at_;
  quiet_ = now.receives ? waited > engine_->patience_with_senders() : !now.sends || waited > Engine::hearing;
  return quiet_;
}

Traffic::Open PlannedCollective::open() noexcept {
  Traffic::Open open;
  for (const auto& algorithm : algorithms_) open |= open_of(*algorithm);
  return open;
}

Traffic::Open open_of(Algorithm& algorithm) noexcept {
  Traffic::Open open;
  algorithm.visit_traffic([&](Traffic& traffic) { open |= traffic.open(); });
  return open;
}

std::vector<int> PlannedCollective::missing() const {
  std::set<int> missing;
  for (const Task& task : tasks_)
    if (Awaitable* awaited = task.awaited())
      for (const int rank : awaited->missing()) missing.insert(rank);
  return {missing.begin(), missing.end()};
}

CollectiveTimes PlannedCollective::times() const noexcept {
  CollectiveTimes times = times_;
  times.runs = finished_.load(std::memory_order_acquire);
  if (times_.runs > 0) times.total *= static_cast<double>(times.runs) / static_cast<double>(times_.runs);
  return times;
}

void PlannedCollective::announce() noexcept {
  if (timed()) {
    times_.total += engine_->fabric().seconds() - began_;
    ++times_.runs;
  }
  ledger_.end(record_, failure_ ? Outcome::failed : Outcome::done);
  finished_.store(started_, std::memory_order_release);  // nothing of it is touched any more
}

void PlannedCollective::give_back(std::vector<std::unique_ptr<Algorithm>>& algorithms) noexcept {
  tasks_.clear();
  if (!finished(started_)) ledger_.end(record_, failed() ? Outcome::failed : Outcome::done);
  for (auto& algorithm : algorithms_) {
    algorithm->visit_traffic([](Traffic& traffic) { traffic.take_back(); });
    if (!open_of(*algorithm).nothing()) algorithms.push_back(std::move(algorithm));
  }
  algorithms_.clear();
}

}  // namespace ronda
