#include <ronda/collectives/planned_collective.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <set>
#include <sstream>

namespace ronda {

PlannedCollective::PlannedCollective(std::shared_ptr<Engine> engine, std::vector<std::unique_ptr<Algorithm>> algorithms,
                                     std::string_view name, std::string label, std::span<const std::string> hosts,
                                     std::shared_ptr<const void> keeper, Compression compression)
    : keeper_(std::move(keeper)),
      engine_(std::move(engine)),
      algorithms_(std::move(algorithms)),
      name_(name),
      label_(std::move(label)),
      hosts_(hosts),
      compression_(compression),
      blocking_(std::any_of(algorithms_.begin(), algorithms_.end(), [](const auto& a) { return a->blocking(); })) {
  tasks_.reserve(algorithms_.size());
  for (const auto& algorithm : algorithms_) algorithm->prepare();
}

PlannedCollective::~PlannedCollective() {
  if (!finished(started_)) engine_->withdraw(*this);
}

Event PlannedCollective::start(const Event& ready) {
  if (!finished(started_)) throw LogicError(label_ + " was started again before it was done");
  if (failure_) std::rethrow_exception(failure_);
  if (algorithms_.empty()) {
    ready.wait();
    return {};
  }
  ++started_;
  ready_ = ready;
  waiting_for_ready_ = true;
  for (const auto& algorithm : algorithms_) tasks_.push_back(algorithm->run());
  engine_->submit(*this);
  return {*this, started_};
}

std::size_t PlannedCollective::memory() const noexcept {
  std::size_t bytes = 0;
  for (const auto& algorithm : algorithms_) bytes += algorithm->memory();
  return bytes;
}

void PlannedCollective::visit(StateVisitor& visitor) {
  for (std::size_t i = 0; i < algorithms_.size(); ++i)
    algorithms_[i]->visit(i == 0 ? label_ : label_ + "." + std::to_string(i), visitor);
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
  bool moved = false;
  try {
    if (waiting_for_ready_ && !ready_.ready()) return false;
    waiting_for_ready_ = false;
    for (std::size_t i = 0; i < tasks_.size();) {
      moved |= tasks_[i].advance();
      if (!tasks_[i].done()) {
        ++i;
        continue;
      }
      tasks_[i].result();
      tasks_.erase(tasks_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  } catch (...) {
    failure_ = std::current_exception();
    tasks_.clear();
    return true;
  }
  return moved;
}

void PlannedCollective::give_up(double seconds) noexcept {
  if (waiting_for_ready_) return;  // for this rank's own work, not for others
  failure_ = std::make_exception_ptr(CommunicationError(overdue(seconds)));
  tasks_.clear();
}

std::string PlannedCollective::overdue(double seconds) const {
  std::set<int> missing;
  for (const Task& task : tasks_)
    if (Awaitable* awaited = task.awaited())
      for (const int rank : awaited->missing()) missing.insert(rank);
  std::string who;
  for (const int rank : missing)
    who += (who.empty() ? "" : ", ") + std::string("rank ") + std::to_string(rank) + " on " +
           hosts_[static_cast<std::size_t>(rank)];
  std::ostringstream text;
  text << label_ << " by " << name_ << ", run " << started_ << ", has stood still for " << seconds << " s"
       << (who.empty() ? "" : ", waiting for " + who)
       << ": dead, cut off, stopped, or gone another way? Where it is only slow, --communication-timeout gives it "
          "longer";
  return text.str();
}

void PlannedCollective::announce() noexcept {
  finished_.store(started_, std::memory_order_release);
  finished_.notify_all();
}

void PlannedCollective::wait_for_other_thread(std::uint64_t ticket) const noexcept {
  for (std::uint64_t seen = finished_.load(std::memory_order_acquire); seen < ticket;
       seen = finished_.load(std::memory_order_acquire))
    finished_.wait(seen, std::memory_order_acquire);
}

}  // namespace ronda
