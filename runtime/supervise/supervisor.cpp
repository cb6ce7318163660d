#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/supervise/supervisor.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <iterator>

namespace ronda {

bool is_this_machine(const std::string& name) { return name == "localhost" || name == host_name(); }

RollCall::RollCall(std::span<const std::string> agent, std::span<const Host> hosts, double patience)
    : end_(steady_seconds() + patience) {
  for (const Host& host : hosts) {
    Call call{host, {}};
    std::vector<std::string> command(agent.begin(), agent.end());
    command.insert(command.end(), {host.name, "true"});
    if (!is_this_machine(host.name)) call.child.emplace_back(command, ChildOutput::dropped);
    calls_.push_back(std::move(call));
  }
}

bool RollCall::over() {
  return steady_seconds() >= end_ || std::all_of(calls_.begin(), calls_.end(), [](Call& call) {
           return call.child.empty() || call.child.front().status().has_value();
         });
}

std::vector<Host> RollCall::present() {
  std::vector<Host> present;
  for (Call& call : calls_)
    if (call.child.empty() || call.child.front().status() == 0) present.push_back(call.host);
  return present;
}

namespace {

constexpr double tick = 0.2;       // seconds; a child that ends wakes us at once
constexpr double time_to_die = 5;  // seconds from SIGTERM to SIGKILL
constexpr double ask_every = 1;    // seconds between two requests to save
constexpr std::string_view error_mark = "ronda: error: ";
/// What a job says that has failed, and launchers of a program that they cannot start: Open MPI's, and Hydra.
constexpr std::array<std::string_view, 4> telling{"was unable to launch the specified application",
                                                  "was unable to find the specified executable", "execvp error on file",
                                                  error_mark};

/// Of the steady clock; 0 is no deadline.
bool passed(double deadline) { return deadline != 0 && steady_seconds() > deadline; }

std::vector<Host> without(const std::vector<Host>& all, const std::vector<Host>& some) {
  std::vector<Host> rest;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rest),
               [&](const Host& host) { return std::find(some.begin(), some.end(), host) == some.end(); });
  return rest;
}

std::string names(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) text += (text.empty() ? "" : ", ") + host.name;
  return text;
}

/// Launchers have statuses above 128 of their own, and take others from a rank that a signal has ended.
std::string how_it_ended(int status, int signal) {
  if (signal != 0) return "by signal " + std::to_string(signal);
  const bool of_rank = status > 128 && status <= 128 + SIGRTMAX;
  return "with status " + std::to_string(status) +
         (of_rank ? ", as where signal " + std::to_string(status - 128) + " has ended a rank" : "");
}

/// `step-N`.
bool is_name_of_checkpoint(std::string_view name) {
  constexpr std::string_view prefix = "step-";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         std::ranges::all_of(name.substr(prefix.size()), [](char c) { return c >= '0' && c <= '9'; });
}

/// A shell's words, and the loader's, for a program that is no program here or misses a library.
bool says_not_started(int status) { return status == 126 || status == 127; }

/// The program's words in its n-th start.
std::vector<std::string> program_of(const SupervisorOptions& options, int start) {
  std::vector<std::string> words = options.command;
  if (start == 1 || options.trace.empty()) return words;
  const auto of_trace = [](const std::string& word) { return word == "--trace" || word.starts_with("--trace="); };
  if (const auto word = std::ranges::find_if(words, of_trace); word != words.end()) {
    const bool apart = *word == "--trace" && word + 1 != words.end();
    words.erase(word, word + (apart ? 2 : 1));
  }
  const std::string folder = options.trace.substr(0, options.trace.find_last_not_of('/') + 1);
  words.push_back("--trace=" + folder + "-start-" + std::to_string(start));
  return words;
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, SignalInbox& inbox, std::function<void(const std::string&)> say)
    : options_(std::move(options)), say_(std::move(say)), inbox_(inbox), beginning_(steady_seconds()) {}

SupervisorReport Supervisor::run() {
  int failures_in_a_row = 0;
  report_.status = static_cast<int>(ExitStatus::failed);
  for (;;) {
    const auto hosts = enough_hosts();
    const bool launches = !hosts || report_.starts != 1 || launcher_works(*hosts);    // the first start has failed
    if (stopping_) report_.status = static_cast<int>(ExitStatus::stopped_resumable);  // between two starts
    if (!hosts || stopping_) break;
    if (!launches) {
      report_.status = static_cast<int>(ExitStatus::bad_input);
      break;
    }
    const std::string before = newest_checkpoint();
    const Ending ending = run_job(*hosts);
    if (ending == Ending::done) report_.status = static_cast<int>(ExitStatus::done);
    if (ending == Ending::refused) report_.status = static_cast<int>(ExitStatus::bad_input);
    if (ending == Ending::stopped) report_.status = static_cast<int>(ExitStatus::stopped_resumable);
    if (ending == Ending::done || ending == Ending::refused || ending == Ending::stopped) break;
    if (ending == Ending::made_way) continue;

    ++report_.failures;
    if (stopping_) break;
    failures_in_a_row = newest_checkpoint() == before ? failures_in_a_row + 1 : 1;
    if (failures_in_a_row > options_.max_failures) {
      give_up("gives up: " + counted(failures_in_a_row, "failure") + " in a row without a new checkpoint");
      break;
    }
    const double backoff = options_.first_backoff * std::exp2(failures_in_a_row - 1);
    pause(std::min(backoff, options_.longest_backoff));
  }
  report_.wall_seconds = steady_seconds() - beginning_;
  return std::move(report_);
}

/// Those that answer, as soon as they have room for enough ranks; nothing where they are missing for too long, or we
/// are asked to stop.
std::optional<std::vector<Host>> Supervisor::enough_hosts() {
  const double asked = steady_seconds();
  for (bool told = false; !stopping_; told = true) {
    RollCall roll_call(options_.agent, options_.hosts, options_.patience);
    while (!roll_call.over() && !stopping_) heed(inbox_.wait(tick), nullptr);
    heed(inbox_.wait(0), nullptr);  // signals that arrived before the first wait
    if (stopping_) break;
    const auto present = roll_call.present();
    if (slots_of(present) >= options_.min_ranks) return present;
    if (steady_seconds() - asked > options_.wait_for_hosts) {
      give_up("gives up: too few hosts for " + std::to_string(std::lround(options_.wait_for_hosts)) + " s");
      return std::nullopt;
    }
    if (!told)
      tell("waits: no answer from " + names(without(options_.hosts, present)) + "; the others have room for " +
           counted(slots_of(present), "rank") + " of " + std::to_string(options_.min_ranks) + " at least");
    pause(std::min(options_.look_every, 5.0));
  }
  return std::nullopt;
}

/// Whether the launcher can start a program that ends at once on hosts that answer. A launcher that hangs counts as
/// working.
bool Supervisor::launcher_works(const std::vector<Host>& hosts) {
  std::vector<std::string> command = options_.launcher;
  command.insert(command.end(), {"-n", "1", "--host", list_of(std::span(hosts).first(1)), "true"});
  ChildProcess child(command);
  const double end = steady_seconds() + options_.grace;
  while (!child.status() && !stopping_ && !passed(end)) heed(inbox_.wait(tick), nullptr);
  if (child.status().value_or(0) == 0) return true;
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  give_up("gives up: the launcher starts no program at all (above is why); see that this works: " + text);
  return false;
}

Supervisor::Ending Supervisor::run_job(const std::vector<Host>& hosts) {
  const int ranks = std::min(options_.ranks, slots_of(hosts));
  std::vector<std::string> command = options_.launcher;
  command.insert(command.end(), {"-n", std::to_string(ranks), "--host", list_of(hosts)});
  ++report_.starts;
  const std::vector<std::string> program = program_of(options_, report_.starts);
  command.insert(command.end(), program.begin(), program.end());
  const auto missing = without(options_.hosts, hosts);
  tell("starts " + counted(ranks, "rank") + " on " + names(hosts) +
       (missing.empty() ? "" : "; without " + names(missing) + ", which did not answer"));
  making_way_ = not_started_ = false;
  save_until_ = ask_again_ = leave_until_ = kill_at_ = 0;
  ChildProcess job(command, ChildOutput::overheard);
  return watch(job, hosts);
}

Supervisor::Ending Supervisor::watch(ChildProcess& job, const std::vector<Host>& hosts) {
  roll_call_.reset();
  missed_.clear();
  next_look_ = steady_seconds() + options_.look_every;
  while (!job.status()) {
    heed(inbox_.wait(tick), &job);
    listen(job);
    look_at_hosts(job, hosts);
    if (passed(ask_again_) && leave_until_ == 0) ask_to_save(job);
    if (passed(save_until_)) end(job, "the job has not saved in time");
    if (passed(leave_until_)) end(job, "the job has failed, but its launcher does not leave");
    if (passed(kill_at_)) job.signal_group(SIGKILL);
  }
  listen(job);
  const int status = *job.status();
  if (status == static_cast<int>(ExitStatus::done)) return Ending::done;
  if (status == static_cast<int>(ExitStatus::bad_input)) return Ending::refused;
  if (status == static_cast<int>(ExitStatus::stopped_resumable) || lost_nothing(status)) {
    if (stopping_ || !making_way_) tell("stopped in good order; it can be resumed");
    return making_way_ && !stopping_ ? Ending::made_way : Ending::stopped;
  }
  // Later a host may have lost its file system for a while; at first the program is just not there.
  if (report_.starts == 1 && (not_started_ || says_not_started(status))) {
    tell(options_.command.front() + " cannot be started on " + names(hosts) +
         " (above is why): it is not tried again; is it there on every host, at the same path, with its libraries?");
    return Ending::refused;
  }
  tell("the job ended " + how_it_ended(status, job.ended_by()));
  return Ending::failed;
}

/// Whether a job that was asked to save, and ended with another status, has lost no step: it has written a checkpoint
/// since, or the request itself ended it, because its ranks had not begun.
bool Supervisor::lost_nothing(int status) const {
  if (!stopping_ && !making_way_) return false;
  return (status == 128 + SIGUSR1 && leave_until_ == 0) || newest_checkpoint() != saved_before_;
}

/// Passes on what the job says. When a rank has told an error, all ranks end, and the launcher follows; unless it waits
/// for a host that neither answers it nor is gone.
void Supervisor::listen(ChildProcess& job) {
  const std::string_view said = job.said(telling);
  not_started_ = not_started_ || !(said.empty() || said == error_mark);
  if (!said.empty() && leave_until_ == 0 && kill_at_ == 0) leave_until_ = steady_seconds() + options_.grace;
}

/// Every now and then: a host in use that is silent takes the job with it, where mpirun has not noticed; a lost one
/// that is back is let in.
void Supervisor::look_at_hosts(ChildProcess& job, const std::vector<Host>& in_use) {
  if (kill_at_ != 0 || making_way_) return;
  if (!roll_call_) {
    if (steady_seconds() >= next_look_) roll_call_.emplace(options_.agent, options_.hosts, options_.patience);
    return;
  }
  if (!roll_call_->over()) return;
  const auto present = roll_call_->present();
  roll_call_.reset();
  next_look_ = steady_seconds() + options_.look_every;

  const auto silent = without(in_use, present), answered = without(missed_, silent);
  const auto lost = without(missed_, answered);  // twice in a row: one answer may get lost
  if (!lost.empty()) return end(job, names(lost) + (lost.size() == 1 ? " no longer answers" : " no longer answer"));
  missed_ = silent;
  const auto back = without(present, in_use);
  if (back.empty() || !silent.empty() || slots_of(in_use) >= options_.ranks) return;
  tell(names(back) + " is back: the job saves, to go on with it");
  making_way_ = true;
  ask_to_save(job);
}

void Supervisor::heed(StopRequest request, ChildProcess* job) {
  if (request == StopRequest::none) return;
  const bool first = !stopping_;
  stopping_ = true;
  if (job == nullptr) return;
  if (request == StopRequest::stop_now) return end(*job, "asked to stop now");
  if (!first) return;
  tell("asked to stop: the job saves");
  ask_to_save(*job);
}

/// mpirun forwards the signal to its ranks, but drops it while it starts them: so it is sent repeatedly. Ranks handle
/// the first one.
void Supervisor::ask_to_save(ChildProcess& job) {
  if (ask_again_ == 0) {
    save_until_ = steady_seconds() + options_.grace;
    saved_before_ = newest_checkpoint();
  }
  job.signal(SIGUSR1);
  ask_again_ = steady_seconds() + ask_every;
}

void Supervisor::end(ChildProcess& job, const std::string& why) {
  tell(why + ": ends the job");
  save_until_ = ask_again_ = leave_until_ = 0;
  job.signal(SIGTERM);
  kill_at_ = steady_seconds() + time_to_die;
}

void Supervisor::pause(double seconds) {
  for (const double end = steady_seconds() + seconds; steady_seconds() < end && !stopping_;)
    heed(inbox_.wait(std::clamp(end - steady_seconds(), 0.0, tick)), nullptr);
}

/// The checkpoint that was written last, and when; a job that fails again and again before it writes one makes no
/// progress. Other files of the folder do not count.
std::string Supervisor::newest_checkpoint() const {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string newest;
  fs::file_time_type time = fs::file_time_type::min();
  if (options_.checkpoints.empty()) return newest;
  for (const auto& entry : fs::directory_iterator(options_.checkpoints, ignored)) {
    const std::string name = entry.path().filename();
    const auto written = entry.last_write_time(ignored);
    if (!is_name_of_checkpoint(name) || written < time) continue;
    time = written;
    newest = name + " " + std::to_string(written.time_since_epoch().count());
  }
  return newest;
}

void Supervisor::give_up(const std::string& why) {
  report_.gave_up = why;
  tell(why);
}

void Supervisor::tell(const std::string& text) {
  report_.happenings.push_back({steady_seconds() - beginning_, text});
  say_(text);
}

}  // namespace ronda
