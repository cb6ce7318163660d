#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/supervise/child_process.hpp>
#include <ronda/runtime/supervise/hosts.hpp>

namespace ronda {

/// Whether `name` is the name of this machine, or localhost.
[[nodiscard]] bool is_this_machine(const std::string& name);

/// Checks which hosts still respond, by running `true` on all of them at once. This machine always counts as
/// responding.
class RollCall {
 public:
  /// @param agent     command that reaches a host: AGENT HOST COMMAND, such as ssh
  /// @param patience  timeout in seconds
  RollCall(std::span<const std::string> agent, std::span<const Host> hosts, double patience);

  /// Whether all hosts have responded, or the timeout is over. Does not wait.
  [[nodiscard]] bool over();
  /// The hosts that have responded, in the given order.
  [[nodiscard]] std::vector<Host> present();

 private:
  struct Call {
    Host host;
    std::vector<ChildProcess> child;  ///< empty for this machine
  };
  std::vector<Call> calls_;
  double end_;
};

struct SupervisorOptions {
  std::vector<std::string> command;                ///< the training program, which resumes by itself
  std::vector<std::string> launcher = {"mpirun"};  ///< receives the arguments -n RANKS --host HOSTS COMMAND
  std::vector<std::string> agent;                  ///< command that reaches a host: AGENT HOST COMMAND
  std::vector<Host> hosts;
  int ranks = 0;          ///< number of ranks if all hosts respond
  int min_ranks = 1;      ///< with fewer, the supervisor waits for hosts
  int max_failures = 10;  ///< limit of failures in a row without a new checkpoint
  /// Folder of the program's --trace; empty: none. Start N uses the folder `TRACE-start-N`, so that the records of
  /// failed starts are kept.
  std::string trace;
  std::filesystem::path checkpoints;  ///< folder in which a new entry means progress; empty: progress is not detected
  double first_backoff = 1, longest_backoff = 60;  ///< seconds before a restart; doubled after each failure in a row
  double look_every = 30;                          ///< seconds between checks of the hosts
  double patience = 10;                            ///< seconds for a host to respond
  double wait_for_hosts = 600;                     ///< seconds to wait while there are too few hosts
  double grace = 60;                               ///< seconds for the job to save on request, or to end after an error
};

struct SupervisorReport {
  int status = 0;  ///< exit status for this process
  int starts = 0, failures = 0;
  double wall_seconds = 0;
  std::string gave_up = {};  ///< reason for giving up; empty: did not give up
  struct Happening {
    double seconds;  ///< since the beginning
    std::string text;
  };
  std::vector<Happening> happenings;
};

/// Runs a training job under mpirun until it is done. If a rank or a host fails, restarts the job on the hosts that
/// respond; if lost hosts return, restarts it on all hosts. The job itself resumes from its newest checkpoint.
///
/// Exit status of a job:
/// - 0: done;
/// - 2: invalid input, which a retry cannot fix; also if the program cannot be started, or the launcher starts nothing;
/// - 75: stopped on request;
/// - any other: a failure.
class Supervisor {
 public:
  /// @param inbox  made before anything that a signal must not terminate; must outlive this object
  /// @param say    prints a line about each event
  Supervisor(SupervisorOptions options, SignalInbox& inbox, std::function<void(const std::string&)> say);

  /// Blocks. SIGUSR1, SIGTERM, SIGINT and SIGHUP make the job save and stop; a second SIGTERM or SIGINT ends it. The
  /// status is then 75 if no progress was lost: the job wrote a checkpoint after the first signal, or had not begun.
  SupervisorReport run();

 private:
  enum class Ending : unsigned char { done, refused, stopped, made_way, failed };

  [[nodiscard]] std::optional<std::vector<Host>> enough_hosts();
  [[nodiscard]] bool launcher_works(const std::vector<Host>& hosts);
  Ending run_job(const std::vector<Host>& hosts);
  Ending watch(ChildProcess& job, const std::vector<Host>& hosts);
  [[nodiscard]] bool lost_nothing(int status) const;
  void listen(ChildProcess& job);
  void look_at_hosts(ChildProcess& job, const std::vector<Host>& in_use);
  void heed(StopRequest request, ChildProcess* job);
  void ask_to_save(ChildProcess& job);
  void end(ChildProcess& job, const std::string& why);
  void pause(double seconds);
  [[nodiscard]] std::string newest_checkpoint() const;
  void give_up(const std::string& why);
  void tell(const std::string& text);

  SupervisorOptions options_;
  std::function<void(const std::string&)> say_;
  SignalInbox& inbox_;
  SupervisorReport report_;
  double beginning_;

  bool stopping_ = false;     ///< a signal has requested a stop
  bool not_started_ = false;  ///< the launcher reported that it cannot start the program
  bool making_way_ = false;   ///< the job was asked to save because a host is back
  double save_until_ = 0;     ///< time to end a job that was asked to save; 0: not asked
  double ask_again_ = 0;      ///< time to repeat the request to save; 0: not asked
  std::string saved_before_;  ///< the newest checkpoint when the job was asked to save
  double leave_until_ = 0;    ///< time to end a job that reported an error; 0: no error
  double kill_at_ = 0;        ///< time to kill a job that was asked to end; 0: not asked
  std::optional<RollCall> roll_call_;
  double next_look_ = 0;
  std::vector<Host> missed_;  ///< hosts in use that did not respond to the last check
};

}  // namespace ronda
