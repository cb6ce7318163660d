#include <ronda/coordinator/detail/loop.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
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
      table_(size_, [this](int rank) { return link_->name_of_rank(rank); }),
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
  if (worked || counters_.cycles.load(std::memory_order_relaxed) == 0) tell_notes();
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
    for (Submission* submission : arrived_) submission->since = now;
    std::erase_if(arrived_, [&](Submission* submission) { return fail_given_up(*submission); });
    in_flight_ += arrived_.size();
    waiting_.insert(waiting_.end(), arrived_.begin(), arrived_.end());
    fail_if_closed();
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
  return !name.contested || !name.announced_by(rank_);
}

// ---- a cycle of all ranks -------------------------------------------------------------------------------------------

std::uint64_t CoordinatorLoop::flags() {
  std::uint64_t flags = 0;
  if (!unannounced_.empty() || desk_.has_word(in_flight_ == 0)) flags |= something_to_announce;
  std::size_t bytes = 256;  // what comes besides
  for (const Submission* submission : unannounced_)
    bytes += announcement_bytes(submission->name(), submission->descriptor());
  if (left_out_ || bytes > CoordinatorLink::small_block) flags |= much_to_announce;
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
  word_warnings_ = 0;
  std::uint64_t ended = 0;
  for_each_bit(ready, [&](std::uint32_t id) {
    const NameTable::Name& name = table_[id];
    Submission* const submission = std::exchange(by_id_[id], nullptr);  // null where this rank has joined
    ready_[id / bits_a_word] &= ~bit_of(id);
    if (submission != nullptr) --in_flight_;
    if (!warnings_.empty()) warnings_.erase(id);
    ++ended;
    const Descriptor& descriptor = name.descriptor;
    const bool has_no_root = descriptor.kind == NamedKind::broadcast && table_.has_joined(descriptor.root);
    if (descriptor.kind == NamedKind::split || has_no_root) {
      if (table_.anybody_joined()) {
        if (submission != nullptr)
          submission->fail(communication_error("'" + name.text + "' cannot be done: " +
                                               (has_no_root ? table_.text_of(RankSet(descriptor.root)) + " has joined"
                                                            : std::string("some ranks have joined"))));
      } else if (submission != nullptr) {  // as it is where nobody has joined
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
  block_.resize(large ? link_->large_block() : CoordinatorLink::small_block);
  AnnouncementBlock block(block_);
  auto word = desk_.word(in_flight_ == 0);
  if (word) {
    word->ranks = RankSet(rank_);
    block.add(*word);
  }
  for (const Submission* submission : unannounced_)  // those that do not fit come in the next cycle
    if (!block.add({Announcement::What::tensors, submission->name(), submission->descriptor(), RankSet(rank_)})) break;
  link_->merge(block_);
  const Announcements heard = Announcements::read(block_);
  left_out_ = heard.left_out;
  counters_.announcements.fetch_add(1, std::memory_order_relaxed);
  if (word && heard.say(word->what, rank_)) word_was_heard(word->what);
  const auto is_word = [](const Announcement& one) { return one.what != Announcement::What::tensors; };
  if (std::ranges::any_of(heard.all, is_word)) word_warnings_ = 0;
  return apply(table_.hear(heard.all));
}

void CoordinatorLoop::word_was_heard(Announcement::What what) {
  desk_.word_was_heard(what);
  word_since_ = steady_seconds();
  if (what == Announcement::What::joined) given_up_.clear();  // who joins is behind in nothing
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
  fail_if_closed();
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
  if (const auto id = table_.find(name)) warnings_.erase(*id);
  std::erase_if(waiting_, [&](Submission* submission) {
    if (submission->name() != name) return false;
    submission->fail(std::make_exception_ptr(LogicError(text)));
    --in_flight_;
    return true;
  });
}

void CoordinatorLoop::fail_if_closed() {
  if (!table_.closed().empty())
    fail_all_in_flight(table_.text_of(RankSet(table_.closed().first())) + " has closed the coordinator");
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
  warnings_.clear();
  in_flight_ = 0;
}

// ---- what is missing ------------------------------------------------------------------------------------------------

/// Seconds after which there is one more: each comes after twice as long as the one before.
double CoordinatorLoop::waiting_for_warning(std::uint32_t warnings) const {
  return std::ldexp(options_.missing_warning, static_cast<int>(warnings));
}

CoordinatorLoop::Lateness CoordinatorLoop::lateness(double since, std::uint32_t warnings, double now) const {
  const auto over = [&](double limit) { return limit > 0 && now - since > limit; };
  if (over(options_.missing_limit)) return Lateness::over_the_limit;
  return over(waiting_for_warning(warnings)) ? Lateness::worth_a_warning : Lateness::in_time;
}

std::uint32_t CoordinatorLoop::warnings_of(std::uint32_t id) const {
  const auto found = warnings_.find(id);
  return found == warnings_.end() ? 0 : found->second;
}

CoordinatorLoop::Lateness CoordinatorLoop::lateness(const Submission& submission, double now) const {
  return lateness(submission.since, submission.id ? warnings_of(*submission.id) : 0, now);
}

/// Of this rank's word that it joins or closes, for which it waits for the others'.
CoordinatorLoop::Lateness CoordinatorLoop::lateness_of_word(double now) const {
  const bool waits = table_.has_joined(rank_) || table_.has_closed(rank_);
  return waits ? lateness(word_since_, word_warnings_, now) : Lateness::in_time;
}

bool CoordinatorLoop::overdue(double now) {
  if (now - checked_overdue_ < between_looks_for_overdue) return false;
  checked_overdue_ = now;
  if (lateness_of_word(now) != Lateness::in_time) return true;
  const auto late = [&](const Submission* submission) {
    return submission != nullptr && lateness(*submission, now) != Lateness::in_time;
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

CoordinatorLoop::Late CoordinatorLoop::agree_on_late(std::span<Submission* const> of_id, double now) {
  const Lateness word = lateness_of_word(now);
  const auto agree = [&](Lateness wanted) {  // a bit for the word, then one for each name
    std::vector<std::uint64_t> bits(1 + words_for(of_id.size()));
    bits[0] = word == wanted ? 1 : 0;
    for (std::uint32_t id = 0; id < of_id.size(); ++id)
      if (of_id[id] != nullptr && lateness(*of_id[id], now) == wanted) bits[1 + id / bits_a_word] |= bit_of(id);
    for (std::uint64_t& word_of_bits : bits) word_of_bits = ~word_of_bits;  // what any rank has, not what all have
    link_->intersect(bits, true);
    for (std::uint64_t& word_of_bits : bits) word_of_bits = ~word_of_bits;
    return bits;
  };
  Late late{agree(Lateness::worth_a_warning), agree(Lateness::over_the_limit)};
  if (late.warn[0] != 0) late.word = Lateness::worth_a_warning;
  if (late.give_up[0] != 0) late.word = Lateness::over_the_limit;
  late.warn.erase(late.warn.begin());
  late.give_up.erase(late.give_up.begin());
  return late;
}

/// The same on all ranks.
std::map<std::uint32_t, RankSet> CoordinatorLoop::find_who_has(std::span<const std::uint32_t> ids,
                                                               std::span<Submission* const> of_id) {
  block_.resize(link_->large_block());
  AnnouncementBlock block(block_);
  for (const std::uint32_t id : ids)
    if (of_id[id] != nullptr)
      block.add({Announcement::What::has, {reinterpret_cast<const char*>(&id), sizeof id}, {}, RankSet(rank_)});
  link_->merge(block_);
  std::map<std::uint32_t, RankSet> who_has;
  for (const Announcement& announcement : Announcements::read(block_).all) {
    std::uint32_t id = 0;
    std::memcpy(&id, announcement.name.data(), sizeof id);
    who_has[id] = announcement.ranks;
  }
  return who_has;
}

/// All ranks find out what is late anywhere, and who has it. False where all of it has to end, on all ranks.
bool CoordinatorLoop::report_missing(double now) {
  const std::vector<Submission*> of_id = submissions_by_id();
  const Late late = agree_on_late(of_id, now);
  const auto is_late = [&](const std::vector<std::uint64_t>& bits, std::uint32_t id) {
    return (bits[id / bits_a_word] & bit_of(id)) != 0;
  };
  std::vector<std::uint32_t> ids;  // at most as many as fit a block with any ranks; the others come next time
  const std::size_t most = link_->large_block() / (64 + 4 * static_cast<std::size_t>(size_));
  for (std::uint32_t id = 0; id < of_id.size() && ids.size() < most; ++id)
    if (is_late(late.warn, id) || is_late(late.give_up, id)) ids.push_back(id);
  if (!ids.empty()) {
    const auto who_has = find_who_has(ids, of_id);
    for (const auto& [id, have] : who_has) {
      RankSet not_missing = have;
      not_missing.add(table_.joined());
      const RankSet missing = not_missing.complement(size_);
      if (!missing.empty()) tell_missing(id, of_id[id], have, missing, is_late(late.give_up, id));
    }
  }
  return late.word == Lateness::in_time || tell_word_missing(late.word == Lateness::over_the_limit);
}

/// Warns that ranks which have joined or closed wait for others, or gives all up: then false.
bool CoordinatorLoop::tell_word_missing(bool give_up) {
  const bool closes = !table_.closed().empty();
  RankSet said = table_.closed();
  if (!closes) said = table_.joined();
  std::ostringstream text;
  text << table_.text_of(said) << (closes ? " closed the coordinator" : " joined") << ", and for "
       << (give_up ? options_.missing_limit : waiting_for_warning(word_warnings_)) << " s not "
       << table_.text_of(said.complement(size_)) << ", and nothing was reduced";
  if (give_up) {
    fail(communication_error(text.str()));
    return false;
  }
  ++word_warnings_;
  warn(text.str());
  return true;
}

/// Whoever is called may take its time, and any lock.
void CoordinatorLoop::warn(const std::string& text) {
  custody_->without([&] {
    if (options_.print_warnings && rank_ == 0) std::cerr << "ronda: warning: " + text + "\n" << std::flush;
    if (options_.on_warning) options_.on_warning(text);
  });
}

/// What the ranks had to do without, each thing once. Where nobody listens, whoever asks the communicator hears of it.
void CoordinatorLoop::tell_notes() {
  if (!options_.on_warning && !options_.print_warnings) return;
  for (const std::string& note : link_->take_notes())
    if (told_notes_.insert(note).second) warn(note);
}

/// Warns that some ranks miss what others have submitted, or gives it up.
/// @param submission  ours; null where we are one of those who miss it
void CoordinatorLoop::tell_missing(std::uint32_t id, Submission* submission, const RankSet& have,
                                   const RankSet& missing, bool give_up) {
  std::ostringstream text;
  text << "'" << table_[id].text << "' (" << table_[id].descriptor.text() << ") was submitted by "
       << table_.text_of(have) << ", and for "
       << (give_up ? options_.missing_limit : waiting_for_warning(warnings_of(id))) << " s not by "
       << table_.text_of(missing);
  if (give_up) return abandon(id, submission, text.str());
  ++warnings_[id];
  warn(text.str());
}

/// The n-th use of a name on one rank belongs to the n-th on all others: where a rank has none to fail now, its next
/// one does, so that nothing of this use is ever reduced with anything of the next.
void CoordinatorLoop::abandon(std::uint32_t id, Submission* submission, const std::string& why) {
  table_.forget_contest(id);
  warnings_.erase(id);
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
