#include <ronda/coordinator/detail/in_flight.hpp>
#include <ronda/coordinator/detail/name_bits.hpp>

#include <utility>

namespace ronda {

std::size_t InFlight::take(SubmissionDesk& desk, double now, FunctionRef<bool(Submission&)> ends_at_once) {
  arrived_.clear();
  desk.take(arrived_);
  for (Submission* submission : arrived_) {
    submission->since = now;
    if (!submission->id) submission->id = table_.find(submission->name());
  }
  std::erase_if(arrived_, [&](Submission* submission) { return ends_at_once(*submission); });
  count_ += arrived_.size();
  waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
  return arrived_.size();
}

void InFlight::sort_out() {
  unannounced_.clear();
  ready_.resize(words_for(table_.size()));
  by_id_.resize(table_.size());
  std::erase_if(waiting_, [&](Submission* submission) {
    if (!is_ready(*submission)) {
      if (must_announce(*submission)) unannounced_.push_back(submission);
      return false;
    }
    ready_[*submission->id / bits_a_word] |= bit_of(*submission->id);
    by_id_[*submission->id] = submission;
    return true;
  });
}

bool InFlight::is_ready(Submission& submission) const {
  if (!submission.id) submission.id = table_.find(submission.name());
  if (!submission.id) return false;
  const NameTable::Name& name = table_[*submission.id];
  if (name.contested) return false;
  if (submission.checked == submission.version() && submission.checked_with == name.version) return true;
  if (!(name.descriptor == submission.descriptor())) return false;
  submission.checked = submission.version();
  submission.checked_with = name.version;
  return true;
}

bool InFlight::must_announce(const Submission& submission) const {
  if (!submission.id) return true;
  const NameTable::Name& name = table_[*submission.id];
  return !name.contested || !name.announced_by(rank_);
}

std::vector<Submission*> InFlight::by_id() {
  std::vector<Submission*> all = by_id_;
  all.resize(table_.size());
  for (Submission* submission : waiting_) {
    if (!submission->id) submission->id = table_.find(submission->name());
    if (submission->id) all[*submission->id] = submission;
  }
  return all;
}

Submission* InFlight::clear(std::uint32_t id) {
  if (id >= by_id_.size() || by_id_[id] == nullptr) return nullptr;
  ready_[id / bits_a_word] &= ~bit_of(id);
  return std::exchange(by_id_[id], nullptr);
}

Submission* InFlight::remove(std::uint32_t id) {
  Submission* const submission = clear(id);
  if (submission != nullptr) --count_;
  return submission;
}

void InFlight::withdraw(std::uint32_t id) {
  if (Submission* const submission = clear(id)) waiting_.push_back(submission);
}

void InFlight::fail(Submission& submission, const std::exception_ptr& error) {
  std::erase(waiting_, &submission);
  if (submission.id && *submission.id < by_id_.size() && by_id_[*submission.id] == &submission) clear(*submission.id);
  --count_;
  submission.fail(error);
}

void InFlight::fail_waiting(std::string_view name, const std::exception_ptr& error) {
  std::erase_if(waiting_, [&](Submission* submission) {
    if (submission->name() != name) return false;
    submission->fail(error);
    --count_;
    return true;
  });
}

void InFlight::fail_all(const std::string& why) {
  const auto end = [&](Submission* submission) {
    submission->fail(communication_error("'" + submission->name() + "' cannot be done: " + why));
  };
  for (Submission* submission : waiting_) end(submission);
  for (Submission*& submission : by_id_)
    if (submission != nullptr) end(std::exchange(submission, nullptr));
  waiting_.clear();
  std::ranges::fill(ready_, 0);
  count_ = 0;
}

}  // namespace ronda
