#include <ronda/collectives/coordinator/loop.hpp>
#include <ronda/runtime/core/clock.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

namespace ronda {
namespace {

// The words of a cycle: flags, settings, then a bit for each name.
constexpr std::size_t first_bits = 2;

// Flags count where any rank has them.
constexpr std::uint64_t something_to_announce = 1;
constexpr std::uint64_t much_to_announce = 2;
constexpr std::uint64_t something_overdue = 4;
constexpr std::uint64_t nothing_in_flight = 8;

/// A rank with nothing to do comes to a cycle so often, for others that wait for it in vain.
constexpr double resting_seconds = 5e-3;
/// Where all have something in flight, but nothing in common, cycles follow one another so fast at first, then slower.
constexpr double first_backoff = 20e-6, last_backoff = 1e-3;
constexpr double between_looks_for_overdue = 0.05;

constexpr std::size_t bits_a_word = 64;
std::size_t words_for(std::size_t names) { return (names + bits_a_word - 1) / bits_a_word; }
std::uint64_t bit_of(std::uint32_t id) { return std::uint64_t{1} << (id % bits_a_word); }

template <class Body>
void for_each_bit(std::span<const std::uint64_t> words, const Body& body) {
  for (std::size_t word = 0; word < words.size(); ++word)
    for (std::uint64_t left = words[word]; left != 0; left &= left - 1)
      body(static_cast<std::uint32_t>(word * bits_a_word) + static_cast<std::uint32_t>(std::countr_zero(left)));
}

std::uint64_t to_word(const CycleSettings& settings) {
  return std::uint64_t{settings.batch_bytes} << 24 |
         static_cast<std::uint64_t>(std::lround(settings.gather_seconds * 1e6));
}
CycleSettings from_word(std::uint64_t word) {
  return {static_cast<std::size_t>(word >> 24), static_cast<double>(word & 0xFFFFFF) * 1e-6};
}

std::exception_ptr communication_error(const std::string& text) {
  return std::make_exception_ptr(CommunicationError(text));
}

void add_seconds(std::atomic<std::uint64_t>& nanoseconds, double seconds) {
  nanoseconds.fetch_add(static_cast<std::uint64_t>(seconds * 1e9), std::memory_order_relaxed);
}

}  // namespace

CoordinatorLoop::CoordinatorLoop(std::unique_ptr<CoordinatorLink> link, Options options, std::shared_ptr<Bell> bell,
                                 std::shared_ptr<Custody> custody)
    : custody_(std::move(custody)),
      link_(std::make_unique<LinkWithoutCustody>(std::move(link), custody_)),
      options_(std::move(options)),
      bell_(std::move(bell)),
      desk_(bell_),
      rank_(link_->rank()),
      size_(link_->size()),
      table_(link_->rank_names()),
      fusion_(*link_),
      tuner_(options_.tuning),
      settings_(tuner_.settings()) {}

void CoordinatorLoop::run() noexcept {
  const Custody::Hold hold = custody_->take();
  try {
    do custody_->without([this] { pace(); });
    while (cycle());
  } catch (...) {
    fail(std::current_exception());
  }
}

void CoordinatorLoop::give_up(const std::exception_ptr& error) noexcept {
  custody_->give_up(error, [&] { fail(error); });
}

void CoordinatorLoop::fail(const std::exception_ptr& error) noexcept {
  desk_.fail(error);
  for (const auto& group : groups_) group->fail(error);
}

bool CoordinatorLoop::has_work() const noexcept {
  return in_flight_ > 0 ||
         std::any_of(groups_.begin(), groups_.end(), [](const auto& group) { return group->has_work(); });
}

/// Waits until it is time for the next cycle. Who has something in flight goes and waits for the others there.
void CoordinatorLoop::pace() {
  const auto gather = [&] {
    if (settings_.gather_seconds > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(settings_.gather_seconds));
  };
  if (!has_work()) {
    if (bell_->listen(resting_seconds)) gather();
  } else if (progress_ == Progress::some) {
    backoff_ = first_backoff;
    gather();
  } else if (progress_ == Progress::none) {
    bell_->listen(backoff_);
    backoff_ = std::min(2 * backoff_, last_backoff);
  }
}

bool CoordinatorLoop::cycle() {
  take_arrivals();
  agree(flags());
  work_ = 0;
  reduce_ready();
  const bool worked = work_ > 0;
  progress_ = worked || (agreed_flags_ & something_to_announce) != 0 ? Progress::some
              : (agreed_flags_ & nothing_in_flight) != 0             ? Progress::none_while_others_rest
                                                                     : Progress::none;
  if ((agreed_flags_ & something_to_announce) != 0 && !exchange_announcements((agreed_flags_ & much_to_announce) != 0))
    return false;
  if ((agreed_flags_ & something_overdue) != 0 && !report_missing(steady_seconds())) return false;
  tune(worked);
  std::erase_if(groups_, [](const auto& group) {
    if (group->cycle()) return false;
    group->hang_up();
    return true;
  });
  counters_.cycles.fetch_add(1, std::memory_order_relaxed);
  return true;
}

/// Frees what is MPI's, with that of all groups inside, on this thread: whoever holds their coordinators may drop them
/// on any other.
void CoordinatorLoop::hang_up() noexcept {
  for (const auto& group : groups_) group->hang_up();
  groups_.clear();
  link_.reset();
}

// ---- what was submitted here ----------------------------------------------------------------------------------------

void CoordinatorLoop::take_arrivals() {
  arrived_.clear();
  desk_.take(arrived_);
  if (!arrived_.empty()) {
    const double now = steady_seconds();
    if (in_flight_ == 0) busy_since_ = now;
    for (Submission* submission : arrived_) {
      submission->since = now;
      submission->warned = false;
    }
    std::erase_if(arrived_, [&](Submission* submission) { return fail_given_up(*submission); });
    in_flight_ += arrived_.size();
    waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
    if (const auto closed = table_.first_closed())
      fail_all_in_flight(table_.rank_text(static_cast<std::size_t>(*closed)) + " has closed the coordinator");
  }
  sort_out();
}

/// What all ranks know as it was submitted here gets its bit.
void CoordinatorLoop::sort_out() {
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

bool CoordinatorLoop::is_ready(Submission& submission) {
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

bool CoordinatorLoop::must_announce(const Submission& submission) const {
  if (!submission.id) return true;
  const NameTable::Name& name = table_[*submission.id];
  return !name.contested || !name.announced[static_cast<std::size_t>(rank_)];
}

// ---- a cycle of all ranks -------------------------------------------------------------------------------------------

std::uint64_t CoordinatorLoop::flags() {
  std::uint64_t flags = 0;
  if (!unannounced_.empty() || desk_.has_word(in_flight_ == 0)) flags |= something_to_announce;
  std::size_t bytes = 256;  // what comes besides
  for (const Submission* submission : unannounced_)
    bytes += announcement_bytes(submission->name(), submission->descriptor());
  if (bytes > CoordinatorLink::small_block) flags |= much_to_announce;
  if (overdue(steady_seconds())) flags |= something_overdue;
  if (in_flight_ == 0) flags |= nothing_in_flight;
  return flags;
}

void CoordinatorLoop::agree(std::uint64_t flags) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  const double start = steady_seconds();
  words_.assign(first_bits + ready_.size(), all);
  words_[0] = ~flags;
  if (rank_ == 0) words_[1] = to_word(tuner_.settings());
  if (!table_.has_joined(rank_)) std::copy(ready_.begin(), ready_.end(), words_.begin() + first_bits);
  link_->intersect(words_, has_work());
  agreed_flags_ = ~words_[0];
  settings_ = from_word(words_[1]);
  add_seconds(counters_.agreeing_nanoseconds, steady_seconds() - start);
}

void CoordinatorLoop::reduce_ready() {
  const std::span<const std::uint64_t> ready(words_.begin() + first_bits, words_.end());
  if (std::all_of(ready.begin(), ready.end(), [](std::uint64_t word) { return word == 0; })) return;
  const double start = steady_seconds();
  word_since_ = start;
  std::uint64_t ended = 0;
  for_each_bit(ready, [&](std::uint32_t id) {
    const NameTable::Name& name = table_[id];
    Submission* const submission = std::exchange(by_id_[id], nullptr);  // null where this rank has joined
    ready_[id / bits_a_word] &= ~bit_of(id);
    if (submission != nullptr) --in_flight_;
    ++ended;
    const Descriptor& descriptor = name.descriptor;
    const bool has_no_root = descriptor.kind == NamedKind::broadcast && table_.has_joined(descriptor.root);
    if (descriptor.kind == NamedKind::split || has_no_root) {
      if (table_.anybody_joined()) {
        if (submission != nullptr)
          submission->fail(communication_error(
              "'" + name.text + "' cannot be done: " +
              (has_no_root ? table_.rank_text(static_cast<std::size_t>(descriptor.root)) + " has joined"
                           : std::string("some ranks have joined"))));
      } else {
        make_group(*submission);
      }
    } else {
      fusion_.add(descriptor, submission);
    }
  });
  const std::size_t bytes_before = fusion_.bytes_done();
  fusion_.run(settings_.batch_bytes);
  constexpr double bytes_worth_a_submission = 1024;
  work_ =
      static_cast<double>(fusion_.bytes_done() - bytes_before) + bytes_worth_a_submission * static_cast<double>(ended);
  counters_.busy_cycles.fetch_add(1, std::memory_order_relaxed);
  counters_.submissions.fetch_add(ended, std::memory_order_relaxed);
  counters_.bytes.store(fusion_.bytes_done(), std::memory_order_relaxed);
  counters_.batches.store(fusion_.batches_done(), std::memory_order_relaxed);
  add_seconds(counters_.reducing_nanoseconds, steady_seconds() - start);
}

void CoordinatorLoop::make_group(Submission& submission) {
  Options options = options_;
  options.tuning.fixed_gather = 0;  // the pace is this loop's
  auto group =
      std::make_shared<CoordinatorLoop>(link_->split(submission.color, submission.key), options, bell_, custody_);
  groups_.push_back(group);
  submission.result = group;
  submission.succeed();
}

void CoordinatorLoop::tune(bool worked) {
  const double now = steady_seconds();
  if (worked && rank_ == 0) tuner_.observe(now - busy_since_, work_);
  if (worked) busy_since_ = now;
  counters_.batch_bytes.store(settings_.batch_bytes, std::memory_order_relaxed);
  counters_.gather_microseconds.store(static_cast<std::uint64_t>(std::lround(settings_.gather_seconds * 1e6)),
                                      std::memory_order_relaxed);
}

// ---- what is new ----------------------------------------------------------------------------------------------------

/// False where this was the last cycle.
bool CoordinatorLoop::exchange_announcements(bool large) {
  AnnouncementWriter writer(large ? CoordinatorLink::large_block : CoordinatorLink::small_block);
  if (const auto word = desk_.word(in_flight_ == 0)) {
    writer.add(word->what, word->name, word->descriptor);
    word_since_ = steady_seconds();
    word_warned_ = false;
    given_up_.clear();  // who joins is behind in nothing
  }
  for (const Submission* submission : unannounced_)  // those that do not fit come in the next cycle
    if (!writer.add(Announcement::What::tensors, submission->name(), submission->descriptor())) break;
  const auto block = writer.block();
  const auto blocks = link_->gather(block);
  std::vector<std::vector<Announcement>> by_rank;
  for (int rank = 0; rank < size_; ++rank)
    by_rank.push_back(read_announcements(blocks.subspan(static_cast<std::size_t>(rank) * block.size(), block.size())));
  counters_.announcements.fetch_add(1, std::memory_order_relaxed);
  return apply(table_.hear(by_rank));
}

bool CoordinatorLoop::apply(const NameTable::Changes& changes) {
  if (changes.left) {
    fail(communication_error(*changes.left));
    return false;
  }
  for (const std::uint32_t id : changes.contested) {
    if (id >= by_id_.size() || by_id_[id] == nullptr) continue;
    waiting_.push_back(std::exchange(by_id_[id], nullptr));
    ready_[id / bits_a_word] &= ~bit_of(id);
  }
  for (const auto& failure : changes.failures) fail_waiting(failure.name, failure.text);
  if (changes.all_joined) desk_.end_join(table_.last_to_join());
  if (const auto closed = table_.first_closed())
    fail_all_in_flight(table_.rank_text(static_cast<std::size_t>(*closed)) + " has closed the coordinator");
  if (!changes.all_closed) return true;
  for (const auto& group : groups_) {
    group->fail(std::make_exception_ptr(LogicError("the coordinator that this group was split off was closed")));
    group->hang_up();
  }
  groups_.clear();
  desk_.end_close();
  return false;
}

void CoordinatorLoop::fail_waiting(std::string_view name, const std::string& text) {
  std::erase_if(waiting_, [&](Submission* submission) {
    if (submission->name() != name) return false;
    submission->fail(std::make_exception_ptr(LogicError(text)));
    --in_flight_;
    return true;
  });
}

void CoordinatorLoop::fail_all_in_flight(const std::string& text) {
  const auto end = [&](Submission* submission) {
    submission->fail(communication_error("'" + submission->name() + "' cannot be done: " + text));
  };
  for (Submission* submission : waiting_) end(submission);
  for (Submission*& submission : by_id_)
    if (submission != nullptr) end(std::exchange(submission, nullptr));
  waiting_.clear();
  std::fill(ready_.begin(), ready_.end(), 0);
  in_flight_ = 0;
}

// ---- what is missing ------------------------------------------------------------------------------------------------

/// What each rank has in flight, and what of it is late: three vectors of bits by id, of every rank, the first of all
/// that it has, then one for each lateness; and how late its word is that it joins or closes.
class CoordinatorLoop::InFlightReport {
 public:
  explicit InFlightReport(std::size_t names)
      : words_(words_for(names)), mine_(CoordinatorLink::large_block / sizeof(std::uint64_t)) {}

  void add(std::uint32_t id, Lateness lateness) {
    mine_[place_of(Lateness::in_time, id)] |= bit_of(id);
    mine_[place_of(lateness, id)] |= bit_of(id);
  }
  void set_word(Lateness lateness) { mine_[vectors * words_] = static_cast<std::uint64_t>(lateness); }
  /// Collective; then all ranks know all, until the link's next call.
  void exchange(CoordinatorLink& link) { all_ = link.gather(std::as_bytes(std::span(mine_))); }
  /// Of what is so late; `in_time`: of all that is in flight.
  [[nodiscard]] bool has(std::size_t rank, std::uint32_t id, Lateness lateness = Lateness::in_time) const {
    return (at(rank, place_of(lateness, id)) & bit_of(id)) != 0;
  }
  [[nodiscard]] Lateness word(std::size_t rank) const { return static_cast<Lateness>(at(rank, vectors * words_)); }

 private:
  static constexpr std::size_t vectors = 3;
  [[nodiscard]] std::size_t place_of(Lateness lateness, std::uint32_t id) const {
    return static_cast<std::size_t>(lateness) * words_ + id / bits_a_word;
  }
  [[nodiscard]] std::uint64_t at(std::size_t rank, std::size_t place) const {
    std::uint64_t word = 0;
    std::memcpy(&word, all_.data() + rank * CoordinatorLink::large_block + place * sizeof word, sizeof word);
    return word;
  }

  std::size_t words_;
  std::vector<std::uint64_t> mine_;
  std::span<const std::byte> all_;
};

CoordinatorLoop::Lateness CoordinatorLoop::lateness(double since, bool warned, double now) const {
  const auto over = [&](double limit) { return limit > 0 && now - since > limit; };
  if (over(options_.missing_limit)) return Lateness::over_the_limit;
  return !warned && over(options_.missing_warning) ? Lateness::worth_a_warning : Lateness::in_time;
}

/// Of this rank's word that it joins or closes, for which it waits for the others'.
CoordinatorLoop::Lateness CoordinatorLoop::lateness_of_word(double now) const {
  const bool waits = table_.has_joined(rank_) || table_.has_closed(rank_);
  return waits ? lateness(word_since_, word_warned_, now) : Lateness::in_time;
}

bool CoordinatorLoop::overdue(double now) {
  if (now - checked_overdue_ < between_looks_for_overdue) return false;
  checked_overdue_ = now;
  if (lateness_of_word(now) != Lateness::in_time) return true;
  const auto late = [&](const Submission* submission) {
    return submission != nullptr && lateness(submission->since, submission->warned, now) != Lateness::in_time;
  };
  return std::any_of(waiting_.begin(), waiting_.end(), late) || std::any_of(by_id_.begin(), by_id_.end(), late);
}

/// What this rank has in flight, by id; null where it has nothing of that name.
std::vector<Submission*> CoordinatorLoop::submissions_by_id() {
  by_id_.resize(table_.size());
  ready_.resize(words_for(table_.size()));
  std::vector<Submission*> all = by_id_;
  for (Submission* submission : waiting_) {
    if (!submission->id) submission->id = table_.find(submission->name());
    if (submission->id) all[*submission->id] = submission;
  }
  return all;
}

/// Every rank tells what it has in flight, and what of it is late; so all know who misses what. False where all of it
/// has to end, on all ranks.
bool CoordinatorLoop::report_missing(double now) {
  const std::vector<Submission*> of_id = submissions_by_id();
  InFlightReport report(of_id.size());
  for (std::uint32_t id = 0; id < of_id.size(); ++id)
    if (of_id[id] != nullptr) report.add(id, lateness(of_id[id]->since, of_id[id]->warned, now));
  report.set_word(lateness_of_word(now));
  report.exchange(*link_);

  Lateness latest_word = Lateness::in_time;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank)
    latest_word = std::max(latest_word, report.word(rank));
  for (std::uint32_t id = 0; id < of_id.size(); ++id) {
    bool warn = false, give_up = false;
    std::string have, have_not;
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(size_); ++rank) {
      warn |= report.has(rank, id, Lateness::worth_a_warning);
      give_up |= report.has(rank, id, Lateness::over_the_limit);
      if (table_.has_joined(static_cast<int>(rank))) continue;
      std::string& list = report.has(rank, id) ? have : have_not;
      list += (list.empty() ? "" : ", ") + table_.rank_text(rank);
    }
    if ((warn || give_up) && !have_not.empty()) tell_missing(id, of_id[id], have, have_not, give_up);
  }
  return latest_word == Lateness::in_time || tell_word_missing(latest_word == Lateness::over_the_limit);
}

/// Warns that ranks which have joined or closed wait for others, or gives all up: then false.
bool CoordinatorLoop::tell_word_missing(bool give_up) {
  const bool closes = table_.first_closed().has_value();
  std::string said, not_said;
  for (int rank = 0; rank < size_; ++rank) {
    std::string& list = table_.has_closed(rank) || (!closes && table_.has_joined(rank)) ? said : not_said;
    list += (list.empty() ? "" : ", ") + table_.rank_text(static_cast<std::size_t>(rank));
  }
  std::ostringstream text;
  text << said << (closes ? " closed the coordinator" : " joined") << ", and for "
       << (give_up ? options_.missing_limit : options_.missing_warning) << " s not " << not_said
       << ", and nothing was reduced";
  if (give_up) {
    fail(communication_error(text.str()));
    return false;
  }
  word_warned_ = true;
  warn(text.str());
  return true;
}

/// Whoever is called may take its time, and any lock.
void CoordinatorLoop::warn(const std::string& text) {
  if (options_.on_warning) custody_->without([&] { options_.on_warning(text); });
}

/// Warns that some ranks miss what others have submitted, or gives it up.
/// @param submission  ours; null where we are one of those who miss it
void CoordinatorLoop::tell_missing(std::uint32_t id, Submission* submission, const std::string& have,
                                   const std::string& have_not, bool give_up) {
  std::ostringstream text;
  text << "'" << table_[id].text << "' (" << table_[id].descriptor.text() << ") was submitted by " << have
       << ", and for " << (give_up ? options_.missing_limit : options_.missing_warning) << " s not by " << have_not;
  if (!give_up) {
    if (submission != nullptr) submission->warned = true;
    warn(text.str());
    return;
  }
  abandon(id, submission, text.str());
}

/// The n-th use of a name on one rank belongs to the n-th on all others: where a rank has none to fail now, its next
/// one does, so that nothing of this use is ever reduced with anything of the next.
void CoordinatorLoop::abandon(std::uint32_t id, Submission* submission, const std::string& why) {
  table_.forget_contest(id);
  if (submission == nullptr) {
    if (table_.has_joined(rank_)) return;
    GivenUp& given_up = given_up_[id];
    ++given_up.times;
    given_up.why = why;
    return;
  }
  std::erase(waiting_, submission);
  if (by_id_[id] == submission) {
    by_id_[id] = nullptr;
    ready_[id / bits_a_word] &= ~bit_of(id);
  }
  --in_flight_;
  submission->fail(communication_error(why));
}

/// True where the others have given it up before.
bool CoordinatorLoop::fail_given_up(Submission& submission) {
  if (!submission.id) submission.id = table_.find(submission.name());
  const auto found = submission.id ? given_up_.find(*submission.id) : given_up_.end();
  if (found == given_up_.end()) return false;
  submission.fail(communication_error("the other ranks gave it up before this one submitted it: " + found->second.why));
  if (--found->second.times == 0) given_up_.erase(found);
  return true;
}

}  // namespace ronda
