#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/core/clock.hpp>

#include <csignal>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

namespace ronda {
namespace {

using Answer = RankReport::Answer;

/// Seconds without a beat after which a process counts as stopped.
constexpr double silence = 1.5;
/// Seconds from the alarm until somebody tells what is known by then.
constexpr double patience_on_a_host = silence, patience_across_hosts = 3;
/// Seconds that others are given to tell, before a rank ends without a word, or tells what the smaller part knows.
constexpr double grace = 3;
/// Seconds that a rank gives each lower one to tell of what failed on its device, up to so many; and that one which has
/// only heard of a failure waits longer.
constexpr double between_ranks = 0.1, hearsay = 1;
constexpr int most_turns = 10;
/// A launcher takes its time to start a process, which others are not to be blamed for: so many times the timeout.
constexpr double late_start = 10;
constexpr double between_letters = 0.3;
/// A voice greets other hosts a few times, at growing distances: the first letters may be lost.
constexpr double first_greetings = 0.3, last_greetings = 3;
/// Seconds between two looks at the neighbours' records, as long as nobody stands still.
constexpr double between_looks = 0.2;
/// An alarm of another host that is older than this is over.
constexpr double fresh = 2;
/// Records of a rank that are looked at for where ranks diverged.
constexpr std::size_t looked_back = record_ring / 2;

/// Signals are for the program's own threads, but for those that a thread brings on itself (see RecordGuard).
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    for (const int signal : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Watchdog::Watchdog(std::shared_ptr<Recorder> recorder, Options options)
    : recorder_(std::move(recorder)),
      options_(std::move(options)),
      period_(std::clamp(options_.timeout / 20, 0.005, 0.05)),
      rank_(recorder_->file().head.rank),
      size_(recorder_->file().head.size),
      records_(static_cast<std::size_t>(size_)),
      neighbours_(static_cast<std::size_t>(size_)) {
  for (int rank = 0; rank < size_; ++rank) {  // of a launcher's job, before it has met
    hosts_.add({});
    records_[static_cast<std::size_t>(rank)] = record_path(recorder_->folder(), rank).string();
  }
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Watchdog::~Watchdog() { stop(); }

void Watchdog::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard door(door_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::meet(HostNames hosts, const std::map<int, std::string>& here, std::unique_ptr<SideChannel> channel) {
  const std::lock_guard door(door_);
  met_ = true;
  rank_ = recorder_->file().head.rank;
  size_ = static_cast<int>(hosts.size());
  hosts_ = std::move(hosts);
  records_.assign(hosts_.size(), {});
  for (const auto& [rank, path] : here) records_[static_cast<std::size_t>(rank)] = path;
  neighbours_.clear();
  neighbours_.resize(hosts_.size());
  channel_ = std::move(channel);
  was_voice_ = false;
  forget_start();
}

/// Whatever was late has come.
void Watchdog::forget_start() {
  moves_ = Recorder::get(recorder_->file().head.moves);
  since_ = now_;
  recorder_->set_alarmed(alarmed_ = false);
  recorder_->set_over(false);
  recorder_->forget_told();
  finished_ = speaks_ = false;
  verdict_.store(nullptr, std::memory_order_release);
}

double Watchdog::limit() const noexcept { return met_ ? options_.timeout : late_start * options_.timeout; }

void Watchdog::look_after(UnseenWork& work) {
  const std::lock_guard door(door_);
  unseen_.push_back(&work);
}

void Watchdog::forget(UnseenWork& work) noexcept {
  const std::lock_guard door(door_);
  std::erase(unseen_, &work);
}

std::vector<int> Watchdog::unheard() {
  const std::lock_guard door(door_);
  return channel_ == nullptr ? std::vector<int>() : channel_->unheard();
}

std::string Watchdog::divergence() {
  recorder_->set_alarmed(true);  // so that others tell what they are at
  std::unique_lock door(door_);
  inquiring_ = true;
  const auto enough = std::chrono::duration<double>(channel_ == nullptr ? 2 * period_ : 1.0);
  wake_.wait_for(door, enough, [&] { return stopping_; });
  inquiring_ = false;
  if (!alarmed_) recorder_->set_alarmed(false);
  const std::vector<RankReport> reports = collect(now_);
  const auto divergence = first_divergence(reports);
  return divergence ? text_of(*divergence, reports) : std::string();
}

bool Watchdog::may_speak() {
  const std::lock_guard door(door_);
  find_neighbours();
  looked_at_ = -1;
  look_at_neighbours(now_);
  if (channel_ != nullptr) channel_->receive(now_);
  if (finished_) return speaks_;
  if (is_over()) return false;
  finished_ = speaks_ = true;
  tell_over();
  return true;
}

void Watchdog::run() {
  double before = steady_seconds();
  Door door(door_);
  while (!wake_.wait_for(door, std::chrono::duration<double>(period_), [&] { return stopping_; })) {
    const double time = steady_seconds();
    now_ += std::min(time - before, silence / 2);
    before = time;
    recorder_->beat();
    if (!finished_) look(now_, door);
  }
}

void Watchdog::look(double now, Door& door) {
  const bool failed = look_at_unseen(now, door);
  if (finished_) return;
  watch_own(now);
  if (now - searched_at_ > 1 || alarmed_ || inquiring_ || failed) find_neighbours();
  if (now - searched_at_ > 1) searched_at_ = now;
  look_at_neighbours(now);
  if (channel_ != nullptr) talk(now);
  bool asked = alarmed_ || (channel_ != nullptr && now - channel_->alarmed_at() < fresh);
  for (const Neighbour& neighbour : neighbours_)
    asked = asked || (neighbour != nullptr && (neighbour->head().alarmed != 0 || neighbour->head().asked != 0));
  asked_.store(asked, std::memory_order_relaxed);
  if (!reason_.empty()) return finish(std::exchange(reason_, {}), true, true, door);
  if (is_over()) return finish("", false, false, door);
  if (alarmed_ && !failed) decide(now, door);
}

/// A failure that one rank has, others soon hear of: whose own it is tells first, and of several the lowest.
bool Watchdog::look_at_unseen(double now, Door& door) {
  for (UnseenWork* work : unseen_) {
    UnseenWork::Failure failure = work->look();
    if (failure.text.empty()) continue;
    if (failed_at_ < 0) failed_at_ = now;
    const double turn = between_ranks * std::min(rank_, most_turns) + (failure.remote ? hearsay : 0);
    if (now - failed_at_ >= turn && !is_over()) finish(std::move(failure.text), true, true, door);
    return true;
  }
  return false;
}

/// Does this rank wait, and has it for too long?
void Watchdog::watch_own(double now) {
  const RecordHead& head = recorder_->file().head;
  const bool waits = Recorder::get(head.still) != 0 || Recorder::get(head.inside_mpi) != 0;
  const std::uint64_t moves = Recorder::get(head.moves);
  if (!waits || moves != moves_) {
    moves_ = moves;
    since_ = now;
    if (alarmed_) recorder_->set_alarmed(alarmed_ = false);
  }
  if (alarmed_ || now - since_ <= limit()) return;
  recorder_->set_alarmed(alarmed_ = true);
  alarmed_at_ = now;
}

/// What the launcher calls two jobs may be the same, or be unknown; the number that its ranks have agreed on is its
/// own.
bool Watchdog::is_of_this_job(const RecordHead& head) const noexcept {
  const RecordHead& own = recorder_->file().head;
  return met_ ? Recorder::get(head.job) == Recorder::get(own.job) : head.launch == own.launch && head.host == own.host;
}

/// The ranks of this host, by their records. Before the ranks have met, an earlier job's may still lie there.
void Watchdog::find_neighbours() {
  for (int rank = 0; rank < size_; ++rank) {
    auto& neighbour = neighbours_[static_cast<std::size_t>(rank)];
    const auto& path = records_[static_cast<std::size_t>(rank)];
    if (rank == rank_ || neighbour != nullptr || path.empty()) continue;
    auto view = RecordView::open(path);
    if (view == nullptr || !is_of_this_job(view->head()) || (!met_ && view->abandoned())) continue;
    neighbour = std::move(view);
  }
}

void Watchdog::look_at_neighbours(double now) {
  if (now - looked_at_ < between_looks && !alarmed_ && !inquiring_ && !asked()) return;
  looked_at_ = now;
  for (const Neighbour& neighbour : neighbours_)
    if (neighbour != nullptr) neighbour->refresh();
}

bool Watchdog::lives(const Neighbour& neighbour) const {
  if (neighbour == nullptr) return false;
  const auto own = static_cast<std::int64_t>(Recorder::get(recorder_->file().head.last.nanoseconds));
  return 1e-9 * static_cast<double>(own - static_cast<std::int64_t>(neighbour->head().last.nanoseconds)) < silence;
}

bool Watchdog::is_voice() const {
  const bool alarmed = alarmed_ || inquiring_;
  for (int rank = 0; rank < size_; ++rank) {
    const Neighbour& neighbour = neighbours_[static_cast<std::size_t>(rank)];
    if (!lives(neighbour)) continue;
    const bool has_alarm = neighbour->head().alarmed != 0;
    if (has_alarm && (!alarmed || rank < rank_)) return false;
    if (!has_alarm && !alarmed && rank < rank_) return false;
  }
  return true;
}

/// This rank is to tell what stands still: it has an alarm, and no lower one that lives has.
bool Watchdog::leads(double now) const {
  const auto lowest = channel_ == nullptr ? std::nullopt : channel_->lowest_alarmed(now - silence);
  return is_voice() && (!lowest || *lowest > rank_);
}

void Watchdog::talk(double now) {
  channel_->receive(now);
  const bool heard_alarm = now - channel_->alarmed_at() < fresh;
  recorder_->set_asked(heard_alarm);
  const bool voice = is_voice();
  if (voice && !was_voice_) next_greeting_ = now, greeting_gap_ = first_greetings;
  was_voice_ = voice;
  if (!voice && !inquiring_) return;
  bool tells = alarmed_ || inquiring_ || heard_alarm;
  for (const Neighbour& neighbour : neighbours_) tells = tells || (lives(neighbour) && neighbour->head().alarmed != 0);
  if (tells && now - told_at_ >= between_letters) {
    told_at_ = now;
    tell_states(now);
  } else if (now >= next_greeting_ && greeting_gap_ <= last_greetings) {
    next_greeting_ = now + greeting_gap_;
    greeting_gap_ *= 2;
    channel_->say_hello();
  }
}

/// What this rank and its neighbours are at, also those that are stopped or dead.
void Watchdog::tell_states(double now) {
  std::vector<RankStatus> statuses;
  std::vector<RankState> states;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && neighbours_[static_cast<std::size_t>(rank)] == nullptr) continue;
    RankReport report = report_of(rank, now);
    if (!report.state) continue;
    report.state->status.stopped = report.answer == Answer::stopped;
    report.state->status.dead = report.answer == Answer::dead;
    statuses.push_back(report.state->status);
    states.push_back(std::move(*report.state));
  }
  channel_->tell(statuses);
  for (const RankState& state : states) channel_->tell_trail(state, now);
}

RankState Watchdog::own_state() const {
  RankState state = state_of(recorder_->file(), looked_back);
  state.status.rank = rank_;
  return state;
}

RankReport Watchdog::report_of(int rank, double now) {
  const auto index = static_cast<std::size_t>(rank);
  RankReport report{rank, hosts_[index], Answer::none, {}};
  if (rank == rank_) {
    report.answer = Answer::yes;
    report.state = own_state();
  } else if (const Neighbour& neighbour = neighbours_[index]; neighbour != nullptr) {
    report.state = neighbour->state(looked_back);
    if (!report.state) return report;  // somebody has cut its file off
    report.state->status.rank = rank;
    report.answer = lives(neighbour) ? Answer::yes : neighbour->abandoned() ? Answer::dead : Answer::stopped;
  } else if (const auto* heard = channel_ == nullptr ? nullptr : channel_->heard(rank); heard != nullptr) {
    const RankStatus& status = heard->state.status;
    report.state = heard->state;
    if (status.dead || status.stopped)
      report.answer = status.dead ? Answer::dead : Answer::stopped;
    else if (now - heard->at < silence)
      report.answer = Answer::yes;
  }
  return report;
}

/// Before the ranks have met, those of other hosts are not known, and said nothing of.
std::vector<RankReport> Watchdog::collect(double now) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < size_; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (met_ || options_.one_host || rank == rank_ || neighbours_[index] != nullptr)
      reports.push_back(report_of(rank, now));
  }
  return reports;
}

void Watchdog::end(std::string reason) {
  const std::lock_guard door(door_);
  if (finished_ || !reason_.empty() || is_over()) return;
  find_neighbours();
  tell_over();
  reason_ = std::move(reason);
}

bool Watchdog::is_over() const {
  if (recorder_->told_over()) return true;
  if (channel_ != nullptr && channel_->over()) return true;
  return std::any_of(neighbours_.begin(), neighbours_.end(),
                     [](const Neighbour& neighbour) { return neighbour != nullptr && neighbour->head().over != 0; });
}

/// Who leads decides for all that hear from it; should it vanish, the next one begins anew, because more is told to who
/// leads than to others.
void Watchdog::decide(double now, Door& door) {
  const bool leading = leads(now);
  if (leading && !led_) alarmed_at_ = now;
  led_ = leading;
  const double patience = met_ && channel_ == nullptr ? patience_on_a_host : patience_across_hosts;
  if (!leading || now - alarmed_at_ < patience || now - decided_at_ < between_letters) return;
  decided_at_ = now;
  const std::vector<RankReport> reports = collect(now);
  const Diagnosis diagnosis = diagnose(reports);
  if (diagnosis.excused) {
    alarmed_at_ = now - patience + 1;  // look again in a second
    return;
  }
  const auto answering = static_cast<std::size_t>(
      std::ranges::count_if(reports, [](const RankReport& report) { return report.answer == Answer::yes; }));
  // Where a network is cut, each part of the ranks has a lowest one. The larger part's tells, of halves the first's.
  // Before they have met, the first rank's host does.
  const auto all = static_cast<std::size_t>(size_);
  const bool with_first = reports[0].rank == 0 && (reports[0].answer == Answer::yes || !met_);
  const bool one_host = met_ && channel_ == nullptr;
  const bool larger = one_host || 2 * answering > all || ((2 * answering == all || !met_) && with_first);
  if (!larger && now - alarmed_at_ <= patience + grace) return;
  std::ostringstream message;
  message
      << diagnosis.collective << " has stood still for " << limit() << " s, " << diagnosis.text
      << ". Where a rank is only slow, --communication-timeout (in a program: communication_timeout) gives it longer; "
         "what each did last tells: "
      << "ronda_trace " << recorder_->folder().string();
  finish(message.str(), true, true, door);
}

void Watchdog::tell_over() {
  recorder_->set_over(true);
  for (std::size_t rank = 0; rank < neighbours_.size(); ++rank)
    if (neighbours_[rank] != nullptr) ronda::tell_over(records_[rank]);
  for (int times = 0; times < 3 && channel_ != nullptr; ++times) channel_->say_over();
}

void Watchdog::finish(std::string message, bool speaks, bool here, Door& door) {
  finished_ = true;
  recorder_->keep();
  speaks_ = speaks;
  if (here) tell_over();
  recorder_->set_over(true);  // what a voice has heard, its host's ranks see here
  if (options_.on_stall) {
    door.unlock();  // it may ask who is out of reach, or what diverged
    options_.on_stall({message, speaks});
    door.lock();
  }
  for (UnseenWork* work : unseen_) work->give_up(message.empty() ? "another rank has ended the job" : message);
  message_ = message.empty() ? "another rank has ended the job, and says why" : std::move(message);
  verdict_.store(&message_, std::memory_order_release);
}

}  // namespace ronda
