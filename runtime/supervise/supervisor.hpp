#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/runtime/supervise/child_process.hpp>
#include <ronda/runtime/supervise/hosts.hpp>
#include <ronda/runtime/supervise/roll_call.hpp>

namespace ronda {

struct SupervisorOptions {
  std::vector<std::string> command;                ///< the training program, which resumes by itself
  std::vector<std::string> launcher = {"mpirun"};  ///< is given -n RANKS --host HOSTS COMMAND
  std::vector<std::string> agent;                  ///< reaches a host: AGENT HOST COMMAND
  std::vector<Host> hosts;
  int ranks = 0;          ///< over all hosts, where all are there
  int min_ranks = 1;      ///< with fewer it waits for hosts
  int max_failures = 10;  ///< in a row, without a new checkpoint between
  /// Folder of the program's --trace; empty: none. Start N gets a folder beside it, `TRACE-start-N`: the records of the
  /// start that failed stay.
  std::string trace;
  std::filesystem::path checkpoints;  ///< the folder in which a new entry is progress; empty: none is ever seen
  double first_backoff = 1, longest_backoff = 60;  ///< seconds before a restart; doubled after each failure in a row
  double look_every = 30;                          ///< seconds between two looks at the hosts
  double patience = 10;                            ///< seconds that a host may take to answer
  double wait_for_hosts = 600;                     ///< seconds that too few hosts are borne
  double grace = 60;                               ///< seconds to save in when asked to, or to end in after an error
};

struct SupervisorReport {
  int status = 0;  ///< what this process should end with
  int starts = 0, failures = 0;
  double wall_seconds = 0;
  std::string gave_up = {};  ///< why; empty: it did not
  struct Happening {
    double seconds;  ///< since the beginning
    std::string text;
  };
  std::vector<Happening> happenings;
};

/// Runs a training job under mpirun until it is done: starts it again on the hosts that answer when a rank or a host
/// dies, and on all of them when lost ones are back. The job itself resumes from its newest checkpoint.
///
/// Exit status of a job:
/// - 0: done;
/// - 2: wrong input, which a retry does not mend; also a program that cannot be started, or a launcher that starts
///   nothing;
/// - 75: stopped in good order;
/// - any other: a failure.
class Supervisor {
 public:
  /// @param inbox  made before anything that a signal should not end; outlives this object
  /// @param say    prints a line about each event
  Supervisor(SupervisorOptions options, SignalInbox& inbox, std::function<void(const std::string&)> say);

  /// Blocks. SIGUSR1, SIGTERM, SIGINT and SIGHUP make the job save and stop; a second SIGTERM or SIGINT ends it. The
  /// status is then 75 if nothing was lost: the job has written a checkpoint since the first signal, or had not begun.
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

  bool stopping_ = false;     ///< we were asked to
  bool not_started_ = false;  ///< the launcher has said that it cannot start the program
  bool making_way_ = false;   ///< the job was told to save, because a host is back
  double save_until_ = 0;     ///< when a job that was asked to save is ended; 0: not asked
  double ask_again_ = 0;      ///< when a job that was asked to save is asked once more; 0: not asked
  std::string saved_before_;  ///< the newest checkpoint when the job was asked to save
  double leave_until_ = 0;    ///< when a job that told an error is ended; 0: told none
  double kill_at_ = 0;        ///< when a job that was ended is killed; 0: was not ended
  std::optional<RollCall> roll_call_;
  double next_look_ = 0;
  std::vector<Host> missed_;  ///< those in use that did not answer the last look
};

}  // namespace ronda
