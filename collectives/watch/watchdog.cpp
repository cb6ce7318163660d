#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/text.hpp>
#include <ronda/core/process.hpp>

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace ronda {
namespace {

using Answer = RankReport::Answer;

/// Seconds from the alarm until somebody tells what is known by then.
constexpr double patience_on_a_host = silence, patience_across_hosts = 3;
/// Seconds that others are given to tell, before a rank ends without a word, or tells what the smaller part knows.
constexpr double grace = 3;
/// A launcher takes its time to start a process, which others are not to be blamed for: so many times the timeout.
constexpr double late_start = 10;
/// Seconds for which the launcher may have fewer processes than ranks, because it starts them one after the other.
constexpr double incomplete_start = 10;
constexpr double between_decisions = 0.3;
/// Seconds between two looks at the neighbours' records, as long as nobody stands still.
constexpr double between_looks = 0.2;

}  // namespace

Watchdog::Watchdog(std::shared_ptr<Recorder> recorder, Options options)
    : recorder_(std::move(recorder)),
      options_(std::move(options)),
      period_(std::clamp(options_.timeout / 20, 0.005, 0.05)),
      rank_(recorder_->file().head.rank),
      neighbours_(recorder_),
      alarm_(*recorder_),
      ticked_at_(recorder_->clock().now()) {
  for (int rank = 0; rank < static_cast<int>(recorder_->file().head.size); ++rank) hosts_.add({});  // not known yet
}

void Watchdog::meet(HostNames hosts, const std::map<int, std::string>& here, std::unique_ptr<SideChannel> channel) {
  const std::lock_guard door(door_);
  met_ = true;
  rank_ = recorder_->file().head.rank;
  hosts_ = std::move(hosts);
  neighbours_.meet(static_cast<int>(hosts_.size()), here);
  voice_ = HostVoice(std::move(channel));
  forget_start();
}

/// Whatever was late has come.
void Watchdog::forget_start() {
  alarm_.forget(now_);
  recorder_->set_over(false);
  recorder_->forget_told();
  end_.found = end_.speaks = false;
  verdict_.store(nullptr, std::memory_order_release);
}

double Watchdog::limit() const noexcept { return met_ ? options_.timeout : late_start * options_.timeout; }

void Watchdog::look_after(UnseenWork& work) {
  const std::lock_guard door(door_);
  unseen_.look_after(work);
}

void Watchdog::forget(UnseenWork& work) noexcept {
  const std::lock_guard door(door_);
  unseen_.forget(work);
}

std::vector<int> Watchdog::unheard() {
  const std::lock_guard door(door_);
  return voice_.unheard();
}

double Watchdog::inquire() {
  recorder_->set_alarmed(true);  // so that others tell what they are at
  const std::lock_guard door(door_);
  inquiring_ = true;
  return voice_.has_others() ? 1.0 : 2 * period_;
}

std::string Watchdog::divergence() {
  const std::lock_guard door(door_);
  inquiring_ = false;
  if (!alarm_.raised()) recorder_->set_alarmed(false);
  const std::vector<RankReport> reports = collect(now_);
  const auto divergence = first_divergence(reports);
  return divergence ? text_of(*divergence, reports) : std::string();
}

bool Watchdog::may_speak() {
  const std::lock_guard door(door_);
  neighbours_.find();
  looked_at_ = -1;
  look_at_neighbours(now_);
  voice_.listen(now_);
  if (end_.found) return end_.speaks;
  if (is_over()) return false;
  end_.found = end_.speaks = true;
  tell_over();
  return true;
}

// ---- looking --------------------------------------------------------------------------------------------------------

double Watchdog::tick(double time) {
  Door door(door_);
  now_ += std::min(time - std::exchange(ticked_at_, time), silence / 2);
  recorder_->beat();
  if (!end_.found) look(now_, door);
  return time + period_;
}

void Watchdog::look(double now, Door& door) {
  const bool failed = look_at_unseen(now, door);
  if (end_.found || look_at_launcher(now, door)) return;
  if (alarm_.watch(now, limit())) lead_.since = now;
  if (now - searched_at_ > 1 || alarm_.raised() || inquiring_ || failed) neighbours_.find();
  if (now - searched_at_ > 1) searched_at_ = now;
  look_at_neighbours(now);
  if (voice_.has_others()) talk(now);
  asked_.store(alarm_.raised() || voice_.heard_alarm(now) || neighbours_.ask(), std::memory_order_relaxed);
  if (!end_.reason.empty()) return finish(std::exchange(end_.reason, {}), true, true, door);
  if (is_over()) return finish("", false, false, door);
  if (alarm_.raised() && !failed) decide(now, door);
}

bool Watchdog::look_at_unseen(double now, Door& door) {
  std::optional<std::string> failure = unseen_.look(now, rank_);
  if (failure && !failure->empty() && !is_over()) finish(std::move(*failure), true, true, door);
  return failure.has_value();
}

/// True if a process ended before the ranks met. It then never calls MPI_Init, where the others wait for it, and the
/// job is over.
bool Watchdog::look_at_launcher(double now, Door& door) {
  if (met_ || options_.started_here == 0 || now - counted_at_ < 1) return false;
  counted_at_ = now;
  const int children = children_of(::getppid());  // this process among them, unless the system hides them
  if (children == 0 || children >= options_.started_here) complete_at_ = now;
  if (now - complete_at_ < std::min(incomplete_start, options_.timeout)) return false;
  neighbours_.find();
  neighbours_.refresh();
  if (!neighbours_.this_rank_speaks(alarm_.raised())) return false;
  std::vector<int> missing;
  for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank)
    if (options_.one_host && rank != rank_ && !neighbours_.sees(rank)) missing.push_back(rank);
  finish("MPI_Init waits for " + (missing.empty() ? "a rank" : ranks_text(missing)) + " on " + host_name() +
             ", whose process has ended without calling it; all programs of one launcher's command must be programs of "
             "MPI, and what that one printed tells why it ended",
         true, true, door);
  return true;
}

void Watchdog::look_at_neighbours(double now) {
  if (now - looked_at_ < between_looks && !alarm_.raised() && !inquiring_ && !asked()) return;
  looked_at_ = now;
  neighbours_.refresh();
}

void Watchdog::talk(double now) {
  voice_.listen(now);
  const bool heard_alarm = voice_.heard_alarm(now);
  recorder_->set_asked(heard_alarm);
  const bool wants = alarm_.raised() || inquiring_;
  using Part = HostVoice::Part;
  const Part part = neighbours_.this_rank_speaks(wants) ? Part::speaks : inquiring_ ? Part::inquires : Part::silent;
  voice_.talk(now, part, wants || heard_alarm || neighbours_.alarmed(), [&] { return states_here(now); });
}

/// This rank is to tell what stands still: it has an alarm, and no lower one that lives has.
bool Watchdog::leads(double now) const {
  const auto lowest = voice_.lowest_alarmed(now);
  return neighbours_.this_rank_speaks(alarm_.raised() || inquiring_) && (!lowest || *lowest > rank_);
}

// ---- what is known of ranks -----------------------------------------------------------------------------------------

/// What this rank and its neighbours are at, also those that are stopped or dead.
std::vector<RankState> Watchdog::states_here(double now) {
  std::vector<RankState> states;
  for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank) {
    if (rank != rank_ && !neighbours_.sees(rank)) continue;
    RankReport report = report_of(rank, now);
    if (!report.state) continue;
    report.state->status.stopped = report.answer == Answer::stopped;
    report.state->status.dead = report.answer == Answer::dead;
    states.push_back(std::move(*report.state));
  }
  return states;
}

RankReport Watchdog::report_of(int rank, double now) {
  RankReport report{rank, hosts_[static_cast<std::size_t>(rank)], Answer::none, {}};
  if (rank == rank_) {
    report.answer = Answer::yes;
    report.state = state_of(recorder_->file(), looked_back);
    report.state->status.rank = rank_;
  } else if (neighbours_.sees(rank)) {
    neighbours_.describe(rank, report);
  } else {
    voice_.describe(rank, now, report);
  }
  return report;
}

/// Before the ranks have met, those of other hosts are not known, and said nothing of.
std::vector<RankReport> Watchdog::collect(double now) {
  std::vector<RankReport> reports;
  for (int rank = 0; rank < static_cast<int>(hosts_.size()); ++rank)
    if (met_ || options_.one_host || rank == rank_ || neighbours_.sees(rank)) reports.push_back(report_of(rank, now));
  return reports;
}

// ---- the end --------------------------------------------------------------------------------------------------------

void Watchdog::end(std::string reason) {
  const std::lock_guard door(door_);
  if (end_.found || !end_.reason.empty() || is_over()) return;
  neighbours_.find();
  tell_over();
  end_.reason = std::move(reason);
}

bool Watchdog::is_over() const { return recorder_->told_over() || voice_.heard_over() || neighbours_.over(); }

/// Who leads decides for all that hear from it; should it vanish, the next one begins anew, because more is told to who
/// leads than to others.
void Watchdog::decide(double now, Door& door) {
  const bool leading = leads(now);
  if (leading && !lead_.leads) lead_.since = now;
  lead_.leads = leading;
  const double patience = met_ && !voice_.has_others() ? patience_on_a_host : patience_across_hosts;
  if (!leading || now - lead_.since < patience || now - lead_.decided_at < between_decisions) return;
  lead_.decided_at = now;
  const std::vector<RankReport> reports = collect(now);
  const Diagnosis diagnosis = diagnose(reports);
  if (diagnosis.excused) {
    lead_.since = now - patience + 1;  // look again in a second
    return;
  }
  if (!is_larger_part(reports) && now - lead_.since <= patience + grace) return;
  TextWriter message;
  message
      << diagnosis.collective << " has stood still for " << limit() << " s, " << diagnosis.text
      << ". Where a rank is only slow, --communication-timeout (in a program: communication_timeout) gives it longer; "
         "what each did last tells: "
      << "ronda_trace " << recorder_->folder().string();
  finish(message.str(), true, true, door);
}

/// Where a network is cut, each part of the ranks has a lowest one. The larger part's tells, of halves the first's.
/// Before they have met, the first rank's host does.
bool Watchdog::is_larger_part(std::span<const RankReport> reports) const {
  if (met_ && !voice_.has_others()) return true;
  const auto answering = static_cast<std::size_t>(
      std::ranges::count_if(reports, [](const RankReport& report) { return report.answer == Answer::yes; }));
  const bool with_first = reports[0].rank == 0 && (reports[0].answer == Answer::yes || !met_);
  return 2 * answering > hosts_.size() || ((2 * answering == hosts_.size() || !met_) && with_first);
}

void Watchdog::tell_over() {
  recorder_->set_over(true);
  neighbours_.tell_over();
  voice_.say_over();
}

void Watchdog::finish(std::string message, bool speaks, bool here, Door& door) {
  end_.found = true;
  recorder_->keep();
  end_.speaks = speaks;
  if (here) tell_over();
  recorder_->set_over(true);  // what a voice has heard, its host's ranks see here
  if (options_.on_stall) {
    door.unlock();  // it may ask who is out of reach, or what diverged
    options_.on_stall({message, speaks});
    door.lock();
  }
  unseen_.give_up(message.empty() ? "another rank has ended the job" : message);
  end_.message = message.empty() ? "another rank has ended the job, and says why" : std::move(message);
  verdict_.store(&end_.message, std::memory_order_release);
}

}  // namespace ronda
