#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/host_names.hpp>
#include <ronda/collectives/stall.hpp>
#include <ronda/collectives/watch/diagnosis.hpp>
#include <ronda/collectives/watch/host_voice.hpp>
#include <ronda/collectives/watch/neighbours.hpp>
#include <ronda/collectives/watch/own_alarm.hpp>
#include <ronda/collectives/watch/recorder.hpp>
#include <ronda/collectives/watch/unseen_failures.hpp>

namespace ronda {

/// Sees to it that no rank waits for ever. `tick` looks at this rank's record; a thread that never calls MPI calls it a
/// few times a second (WatchdogThread). Where the rank has waited for others longer than the timeout and nothing has
/// moved, even inside a call of MPI, it raises the *alarm*: it looks at the records of the ranks on its host, and asks
/// those of other hosts by datagrams, what they are at. A moment later the lowest rank with an alarm, if it hears from
/// most ranks, says which collective stands still, and why; then all end. Ranks at work that takes long, and that they
/// have declared (see Phase), are given the time for it.
///
/// Between hosts one rank of each, its voice, tells what all ranks there are at, and passes on to them what it hears:
/// the lowest that has an alarm, or where none has, the lowest that lives.
///
/// What fails on a device (see UnseenWork) ends the job as well: the first rank that can say why does.
///
/// Until the ranks have met, a process that is started late is waited for ten times as long; and what was found then
/// is forgotten when they have.
///
/// Time in which this process was itself stopped does not count.
class Watchdog {
 public:
  struct Options {
    double timeout = 60;    ///< seconds, more than 0
    bool one_host = false;  ///< all ranks are on this host, known before they meet
    std::function<void(const Stall&)> on_stall;
    int started_here = 0;  ///< number of ranks that the parent process, a launcher, starts on this host; 0: unknown
  };
  /// Watches from now on. `recorder` is this rank's; its clock has the time.
  Watchdog(std::shared_ptr<Recorder> recorder, Options options);
  Watchdog(const Watchdog&) = delete;

  /// Does what is due at `time`, without waiting. Returns the time of the next call. One thread at a time.
  double tick(double time);
  /// Seconds between two calls of `tick`.
  [[nodiscard]] double period() const noexcept { return period_; }
  [[nodiscard]] const Clock& clock() const noexcept { return recorder_->clock(); }
  [[nodiscard]] double timeout() const noexcept { return options_.timeout; }

  /// MPI has told who is where: names of hosts by rank, the ranks on this one and where their records are, and a way to
  /// the others (null: none). After `Recorder::met`.
  void meet(HostNames hosts, const std::map<int, std::string>& here, std::unique_ptr<SideChannel> channel);

  /// Looks after `work` too, from now until it is forgotten.
  void look_after(UnseenWork& work);
  void forget(UnseenWork& work) noexcept;

  // For the engine, while it stands still.
  /// Somebody wants to know whom this rank waits for: `Recorder::waits_for` tells.
  [[nodiscard]] bool asked() const noexcept { return asked_.load(std::memory_order_relaxed); }
  /// Why the job is over; null as long as it is not.
  [[nodiscard]] const std::string* verdict() const noexcept { return verdict_.load(std::memory_order_acquire); }

  /// Ranks of other hosts from which the watchdog has not heard yet; asked some time after they met.
  [[nodiscard]] std::vector<int> unheard();

  /// Asks all other ranks for their records, until `divergence` is called. Returns the seconds that answers take.
  [[nodiscard]] double inquire();
  /// The first difference between the ranks' records that are known by now; empty if there is none.
  [[nodiscard]] std::string divergence();

  /// This rank is about to say why all of them end. False where another one has said it.
  [[nodiscard]] bool may_speak();

  /// Ends the job, for a reason that this rank knows of: when this returns the ranks of this host know that, and those
  /// of others will soon. `on_stall` hears of it.
  void end(std::string reason);

 private:
  using Door = std::unique_lock<std::mutex>;
  void look(double now, Door& door);
  [[nodiscard]] bool look_at_unseen(double now, Door& door);
  [[nodiscard]] bool look_at_launcher(double now, Door& door);
  void forget_start();
  void look_at_neighbours(double now);
  void talk(double now);
  void decide(double now, Door& door);
  [[nodiscard]] bool leads(double now) const;
  [[nodiscard]] bool is_larger_part(std::span<const RankReport> reports) const;
  [[nodiscard]] std::vector<RankReport> collect(double now);
  [[nodiscard]] RankReport report_of(int rank, double now);
  [[nodiscard]] std::vector<RankState> states_here(double now);
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] double limit() const noexcept;
  void tell_over();
  /// @param here  it was found out here: the others do not know yet
  void finish(std::string message, bool speaks, bool here, Door& door);

  /// How the job ends.
  struct End {
    bool found = false;   ///< it is over, or about to be
    bool speaks = false;  ///< this rank says why
    std::string reason;   ///< that this rank knows of, and is to be told
    std::string message;
  };

  /// This rank's part in the decision: it leads where it is the lowest with an alarm.
  struct Lead {
    bool leads = false;
    double since = 0;        ///< when it began to hear what the others are at
    double decided_at = -1;  ///< when it last looked whether that is enough
  };

  std::shared_ptr<Recorder> recorder_;
  const Options options_;
  const double period_;

  std::mutex door_;  ///< guards what follows
  bool met_ = false;
  int rank_;
  HostNames hosts_;  ///< by rank
  Neighbours neighbours_;
  HostVoice voice_;
  OwnAlarm alarm_;
  UnseenFailures unseen_;
  End end_;
  bool inquiring_ = false;
  double ticked_at_;  ///< time of the last tick
  double now_ = 0;    ///< seconds in which this process could look
  double searched_at_ = -1, looked_at_ = -1;
  double counted_at_ = -1, complete_at_ = 0;  ///< last count of the launcher's processes; last complete count
  Lead lead_;

  std::atomic<bool> asked_{false};
  std::atomic<const std::string*> verdict_{nullptr};
};

}  // namespace ronda
