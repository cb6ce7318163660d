#include <ronda/coordinator/detail/submission.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <chrono>

namespace ronda {

std::exception_ptr communication_error(const std::string& text) {
  return std::make_exception_ptr(CommunicationError(text));
}

// ---- one name -------------------------------------------------------------------------------------------------------

void Submission::wait(std::uint64_t number) const {
  for (std::uint64_t seen = finished_.load(std::memory_order_acquire); seen < number;
       seen = finished_.load(std::memory_order_acquire))
    finished_.wait(seen, std::memory_order_acquire);
  require_success(number);
}

void Submission::require_success(std::uint64_t number) const {
  if (!has_failures_.load(std::memory_order_acquire)) return;
  const std::lock_guard door(failures_door_);
  const auto failure =
      std::find_if(failures_.begin(), failures_.end(), [&](const auto& failed) { return failed.first == number; });
  if (failure != failures_.end()) std::rethrow_exception(failure->second);
}

bool Submission::has_failed(std::uint64_t number) const {
  if (!has_failures_.load(std::memory_order_acquire)) return false;
  const std::lock_guard door(failures_door_);
  return std::ranges::any_of(failures_, [&](const auto& failed) { return failed.first == number; });
}

void Submission::fail(std::exception_ptr error) noexcept {
  {
    const std::lock_guard door(failures_door_);
    failures_.emplace_back(finished_.load(std::memory_order_relaxed) + 1, std::move(error));
  }
  has_failures_.store(true, std::memory_order_release);
  end();
}

void Submission::end() noexcept {
  finished_.fetch_add(1, std::memory_order_release);
  finished_.notify_all();
}

// ---- the bell -------------------------------------------------------------------------------------------------------

bool Bell::heard() {
  const std::lock_guard door(door_);
  return std::exchange(rung_, false);
}

void Bell::wait(double seconds) {
  std::unique_lock door(door_);
  wake_.wait_for(door, std::chrono::duration<double>(seconds), [&] { return rung_; });
}

// ---- the desk -------------------------------------------------------------------------------------------------------

void SubmissionDesk::require_open(std::string_view name) const {
  if (failure_) std::rethrow_exception(failure_);
  if (closing_ != State::open || leaving_ != State::open)
    throw LogicError("'" + std::string(name) + "' was submitted after the coordinator was closed");
  if (joining_ != State::open)
    throw LogicError("'" + std::string(name) + "' was submitted after this rank had joined, and before all had");
}

SubmissionDesk::Receipt SubmissionDesk::submit(std::string_view name, const Wish& wish, std::span<const Tensor> tensors,
                                               const std::function<void()>& fill) {
  Receipt receipt;
  {
    const std::lock_guard door(door_);
    require_open(name);
    const std::shared_ptr<Submission>& found = known(name);
    Submission& submission = *found;
    if (!submission.finished(submission.submitted_))
      throw LogicError("'" + submission.name() + "' was submitted again before it was done");
    forget_refused(submission);
    if (submission.version_ == 0 || submission.descriptor_.failed != submission.refused_ ||
        !submission.descriptor_.describes(wish.kind, wish.op, wish.root, tensors)) {
      submission.descriptor_ = Descriptor::of(wish.kind, wish.op, wish.root, tensors);
      submission.descriptor_.failed = submission.refused_;
      ++submission.version_;
    }
    submission.tensors_.assign(tensors.begin(), tensors.end());
    submission.color = wish.color;
    submission.key = wish.key;
    receipt = {found, ++submission.submitted_};
    if (fill)
      ++being_filled_;
    else
      arrived_.push_back(&submission);
  }
  if (fill) {
    fill();
    const std::lock_guard door(door_);
    --being_filled_;
    if (!failure_) arrived_.push_back(receipt.submission.get());
  }
  bell_->ring();
  return receipt;
}

const std::shared_ptr<Submission>& SubmissionDesk::known(std::string_view name) {
  auto found = by_name_.find(name);
  if (found == by_name_.end())
    found = by_name_.emplace(std::string(name), std::make_shared<Submission>(std::string(name))).first;
  return found->second;
}

void SubmissionDesk::note_refused(std::string_view name) {
  const std::lock_guard door(door_);
  Submission& submission = *known(name);
  forget_refused(submission);
  ++submission.refused_;
}

/// Resets the count after a use that failed: it failed on all ranks.
void SubmissionDesk::forget_refused(Submission& submission) {
  const std::uint64_t last = submission.submitted_;
  if (last == submission.forgotten_at_ || !submission.has_failed(last)) return;
  submission.forgotten_at_ = last;
  submission.refused_ = 0;
}

int SubmissionDesk::join() {
  std::unique_lock door(door_);
  require_open("join");
  joining_ = State::wanted;
  has_word_.store(true, std::memory_order_release);
  bell_->ring();
  changed_.wait(door, [&] { return joining_ == State::done || failure_; });
  joining_ = State::open;
  if (failure_) std::rethrow_exception(failure_);
  return last_to_join_;
}

void SubmissionDesk::close() {
  std::unique_lock door(door_);
  if (closing_ == State::done) return;
  require_open("close");
  closing_ = State::wanted;
  has_word_.store(true, std::memory_order_release);
  bell_->ring();
  changed_.wait(door, [&] { return closing_ == State::done || failure_; });
  if (closing_ != State::done) std::rethrow_exception(failure_);
}

void SubmissionDesk::leave(std::string why) noexcept {
  {
    const std::lock_guard door(door_);
    if (closing_ == State::done || failure_ || leaving_ != State::open) return;
    leaving_ = State::wanted;
    why_leaving_ = std::move(why);
    has_word_.store(true, std::memory_order_release);
  }
  bell_->ring();
}

void SubmissionDesk::take(std::vector<Submission*>& into) {
  const std::lock_guard door(door_);
  into.insert(into.end(), arrived_.begin(), arrived_.end());
  arrived_.clear();
}

std::optional<Announcement::What> SubmissionDesk::next_word(bool none_in_flight) const noexcept {
  if (leaving_ == State::wanted) return Announcement::What::left;
  if (!none_in_flight || !arrived_.empty() || being_filled_ > 0) return {};
  if (joining_ == State::wanted) return Announcement::What::joined;
  if (closing_ == State::wanted) return Announcement::What::closed;
  return {};
}

bool SubmissionDesk::has_word(bool none_in_flight) {
  if (!has_word_.load(std::memory_order_acquire)) return false;
  const std::lock_guard door(door_);
  return next_word(none_in_flight).has_value();
}

std::optional<Announcement> SubmissionDesk::word(bool none_in_flight) {
  if (!has_word_.load(std::memory_order_acquire)) return {};
  const std::lock_guard door(door_);
  const auto what = next_word(none_in_flight);
  if (!what) return {};
  return Announcement{*what, *what == Announcement::What::left ? why_leaving_ : std::string(), {}, {}};
}

void SubmissionDesk::word_was_heard(Announcement::What what) {
  const std::lock_guard door(door_);
  (what == Announcement::What::left     ? leaving_
   : what == Announcement::What::joined ? joining_
                                        : closing_) = State::announced;
  has_word_.store(leaving_ == State::wanted || joining_ == State::wanted || closing_ == State::wanted);
}

void SubmissionDesk::end_join(int last) {
  const std::lock_guard door(door_);
  if (joining_ != State::announced) return;
  joining_ = State::done;
  last_to_join_ = last;
  changed_.notify_all();
}

void SubmissionDesk::end_close() {
  const std::lock_guard door(door_);
  closing_ = State::done;
  changed_.notify_all();
}

void SubmissionDesk::fail(std::exception_ptr error) noexcept {
  const std::lock_guard door(door_);
  if (!failure_) failure_ = std::move(error);
  for (auto& [name, submission] : by_name_)
    if (!submission->finished(submission->submitted_)) submission->fail(failure_);
  arrived_.clear();
  changed_.notify_all();
}

}  // namespace ronda
