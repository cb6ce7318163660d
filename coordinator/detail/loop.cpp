#include <ronda/coordinator/detail/loop.hpp>
#include <ronda/coordinator/detail/name_bits.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <optional>
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

std::uint64_t to_word(const CycleSettings& settings) {
  return std::uint64_t{settings.batch_bytes} << 24 |
         static_cast<std::uint64_t>(std::lround(settings.gather_seconds * 1e6));
}
CycleSettings from_word(std::uint64_t word) {
  return {static_cast<std::size_t>(word >> 24), static_cast<double>(word & 0xFFFFFF) * 1e-6};
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
      in_flight_(table_, rank_),
      missing_({options_.missing_warning, options_.missing_limit}, *link_, table_, in_flight_,
               [this](const std::string& text) { warn(text); }),
      fusion_(*link_),
      tuner_(options_.tuning),
      settings_(tuner_.settings()),
      pace_(*bell_),
      clock_(link_->clock()) {
  pace_.rest(clock_.now(), false, settings_.gather_seconds);
}

void CoordinatorLoop::run() noexcept {
  for (Next next = step(clock_.now()); !next.over; next = step(clock_.now())) {
    if (next.operation != nullptr) {
      next.operation->wait();
    } else if (const double pause = next.at - clock_.now(); pause > 0) {
      if (next.listens)
        bell_->wait(pause);
      else
        std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
  }
}

CoordinatorLoop::Next CoordinatorLoop::step(double now) noexcept {
  const Custody::Hold hold = custody_->take();
  try {
    custody_->require_kept();
    return move(now);
  } catch (...) {
    fail(std::current_exception());
    cycle_.reset();
    over_ = true;
    return {.over = true};
  }
}

CoordinatorLoop::Next CoordinatorLoop::move(double now) {
  if (over_) return {.over = true};
  if (!cycle_) {
    if (!pace_.due(now)) return {.at = pace_.at(), .listens = pace_.listens()};
    cycle_.emplace(cycle());
  }
  while (!cycle_->done())
    if (!cycle_->advance()) return {.operation = static_cast<LinkOperation*>(cycle_->awaited())};
  const Task ended = std::move(*cycle_);
  cycle_.reset();
  ended.result();
  pace_.rest(clock_.now(), has_work(), settings_.gather_seconds);
  return {.over = over_, .at = pace_.at(), .listens = pace_.listens()};
}

void CoordinatorLoop::give_up(const std::exception_ptr& error) noexcept {
  custody_->give_up(error, [&] { fail(error); });
}

void CoordinatorLoop::fail(const std::exception_ptr& error) noexcept {
  desk_.fail(error);
  for (const auto& group : groups_) group->fail(error);
}

bool CoordinatorLoop::has_work() const noexcept {
  return !in_flight_.empty() || std::ranges::any_of(groups_, [](const auto& group) { return group->has_work(); });
}

/// Awaits operations of links alone.
Task CoordinatorLoop::cycle() {
  take_arrivals();
  begin_agreeing(flags());
  LinkOperation& agreeing = link_->intersect(words_, has_work());
  co_await agreeing;
  const std::uint64_t flags_of_any = end_agreeing();
  double work = 0;
  if (!std::ranges::all_of(ready_everywhere(), [](std::uint64_t word) { return word == 0; })) {
    const std::size_t bytes_before = fusion_.bytes_done();
    const std::uint64_t ended = begin_reducing();
    co_await fusion_.run(settings_.batch_bytes);
    work = end_reducing(ended, bytes_before);
  }
  const auto any_has = [&](std::uint64_t flag) { return (flags_of_any & flag) != 0; };
  pace_.note(work > 0 || any_has(something_to_announce) ? CyclePace::Progress::some
             : any_has(nothing_in_flight)               ? CyclePace::Progress::none_while_others_rest
                                                        : CyclePace::Progress::none);
  if (any_has(something_to_announce)) {
    const std::optional<Announcement> word = write_announcements(any_has(much_to_announce));
    LinkOperation& merging = link_->merge(block_);
    co_await merging;
    over_ = !hear_announcements(word);
  }
  if (!over_ && any_has(something_overdue)) {
    co_await missing_.report(clock_.now());
    over_ = missing_.end().has_value();
    if (over_) fail(communication_error(*missing_.end()));
  }
  if (over_) co_return;
  tune(work);
  if (work > 0 || counters_.cycles.load(std::memory_order_relaxed) == 0) tell_notes();
  for (std::size_t i = 0; i < groups_.size();) {
    co_await groups_[i]->cycle();
    if (!groups_[i]->over_) {
      ++i;
      continue;
    }
    groups_[i]->hang_up();
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  counters_.cycles.fetch_add(1, std::memory_order_relaxed);
}

/// Frees what is MPI's, with that of all groups inside, on this thread: whoever holds their coordinators may drop them
/// on any other.
void CoordinatorLoop::hang_up() noexcept {
  for (const auto& group : groups_) group->hang_up();
  groups_.clear();
  link_.reset();
}

void CoordinatorLoop::take_arrivals() {
  const double now = clock_.now();
  const bool was_idle = in_flight_.empty();
  const auto fails = [this](Submission& submission) { return missing_.fail_given_up(submission); };
  if (in_flight_.take(desk_, now, fails) > 0) {
    if (was_idle) busy_since_ = now;
    fail_if_closed();
  }
  in_flight_.sort_out();
}

// ---- a cycle of all ranks -------------------------------------------------------------------------------------------

std::uint64_t CoordinatorLoop::flags() {
  std::uint64_t flags = 0;
  if (!in_flight_.unannounced().empty() || desk_.has_word(in_flight_.empty())) flags |= something_to_announce;
  std::size_t bytes = 256;  // what comes besides
  for (const Submission* submission : in_flight_.unannounced())
    bytes += announcement_bytes(submission->name(), submission->descriptor());
  if (left_out_ || bytes > CoordinatorLink::small_block) flags |= much_to_announce;
  if (missing_.overdue(clock_.now())) flags |= something_overdue;
  if (in_flight_.empty()) flags |= nothing_in_flight;
  return flags;
}

void CoordinatorLoop::begin_agreeing(std::uint64_t flags) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  began_ = clock_.now();
  const auto ready = in_flight_.ready();
  words_.assign(first_bits + ready.size(), all);
  words_[0] = ~flags;
  if (rank_ == 0) words_[1] = to_word(tuner_.settings());
  if (!table_.has_joined(rank_)) std::ranges::copy(ready, words_.begin() + first_bits);
}

/// `words_` has what all ranks have. Returns the flags that any rank has.
std::uint64_t CoordinatorLoop::end_agreeing() {
  settings_ = from_word(words_[1]);
  add_seconds(counters_.agreeing_nanoseconds, clock_.now() - began_);
  return ~words_[0];
}

std::span<const std::uint64_t> CoordinatorLoop::ready_everywhere() const noexcept {
  return std::span(words_).subspan(first_bits);
}

/// Returns how many submissions there are to reduce.
std::uint64_t CoordinatorLoop::begin_reducing() {
  began_ = clock_.now();
  missing_.something_was_reduced(began_);
  std::uint64_t ended = 0;
  for_each_bit(ready_everywhere(), [&](std::uint32_t id) {
    reduce(id);
    ++ended;
  });
  return ended;
}

/// Returns the work that this was, in bytes.
double CoordinatorLoop::end_reducing(std::uint64_t ended, std::size_t bytes_before) {
  counters_.busy_cycles.fetch_add(1, std::memory_order_relaxed);
  counters_.submissions.fetch_add(ended, std::memory_order_relaxed);
  counters_.bytes.store(fusion_.bytes_done(), std::memory_order_relaxed);
  counters_.batches.store(fusion_.batches_done(), std::memory_order_relaxed);
  add_seconds(counters_.reducing_nanoseconds, clock_.now() - began_);
  constexpr double bytes_worth_a_submission = 1024;
  return static_cast<double>(fusion_.bytes_done() - bytes_before) +
         bytes_worth_a_submission * static_cast<double>(ended);
}

/// What all ranks have: into the next batch, or, where no bytes are reduced, at once.
void CoordinatorLoop::reduce(std::uint32_t id) {
  const NameTable::Name& name = table_[id];
  Submission* const submission = in_flight_.remove(id);  // null where this rank has joined
  missing_.forget(id);
  const Descriptor& descriptor = name.descriptor;
  const bool has_no_root = descriptor.kind == NamedKind::broadcast && table_.has_joined(descriptor.root);
  if (descriptor.kind != NamedKind::split && !has_no_root) return fusion_.add(descriptor, submission);
  if (submission == nullptr) return;
  if (!table_.anybody_joined()) return make_group(*submission);
  submission->fail(communication_error("'" + name.text + "' cannot be done: " +
                                       (has_no_root ? table_.text_of(RankSet(descriptor.root)) + " has joined"
                                                    : std::string("some ranks have joined"))));
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

void CoordinatorLoop::tune(double work) {
  const double now = clock_.now();
  if (work > 0 && rank_ == 0) tuner_.observe(now - busy_since_, work);
  if (work > 0) busy_since_ = now;
  counters_.batch_bytes.store(settings_.batch_bytes, std::memory_order_relaxed);
  counters_.gather_microseconds.store(static_cast<std::uint64_t>(std::lround(settings_.gather_seconds * 1e6)),
                                      std::memory_order_relaxed);
}

// ---- what is new ----------------------------------------------------------------------------------------------------

/// Into `block_`. Returns what this rank announces besides tensors.
std::optional<Announcement> CoordinatorLoop::write_announcements(bool large) {
  block_.resize(large ? link_->large_block() : CoordinatorLink::small_block);
  AnnouncementBlock block(block_);
  auto word = desk_.word(in_flight_.empty());
  if (word) {
    word->ranks = RankSet(rank_);
    block.add(*word);
  }
  for (const Submission* submission : in_flight_.unannounced())  // those that do not fit come in the next cycle
    if (!block.add({Announcement::What::tensors, submission->name(), submission->descriptor(), RankSet(rank_)})) break;
  return word;
}

/// `block_` has what all ranks announce. False where this was the last cycle.
bool CoordinatorLoop::hear_announcements(const std::optional<Announcement>& word) {
  const Announcements heard = Announcements::read(block_);
  left_out_ = heard.left_out;
  counters_.announcements.fetch_add(1, std::memory_order_relaxed);
  if (word && heard.say(word->what, rank_)) {
    desk_.word_was_heard(word->what);
    missing_.own_word_was_heard(word->what, clock_.now());
  }
  const auto is_word = [](const Announcement& one) { return one.what != Announcement::What::tensors; };
  if (std::ranges::any_of(heard.all, is_word)) missing_.word_was_heard();
  return apply(table_.hear(heard.all));
}

bool CoordinatorLoop::apply(const NameTable::Changes& changes) {
  if (changes.left) {
    fail(communication_error(*changes.left));
    return false;
  }
  for (const std::uint32_t id : changes.contested) in_flight_.withdraw(id);
  for (const auto& failure : changes.failures) {
    if (const auto id = table_.find(failure.name)) missing_.forget(*id);
    in_flight_.fail_waiting(failure.name, std::make_exception_ptr(LogicError(failure.text)));
  }
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

void CoordinatorLoop::fail_if_closed() {
  if (table_.closed().empty()) return;
  in_flight_.fail_all(table_.text_of(RankSet(table_.closed().first())) + " has closed the coordinator");
  missing_.forget_all();
}

// ---- what the user is told ------------------------------------------------------------------------------------------

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
  for (const Message& note : link_->take_notes())
    if (const std::string text = note.text(); told_notes_.insert(text).second) warn(text);
}

}  // namespace ronda
