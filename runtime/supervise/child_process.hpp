#pragma once
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// Requests to a supervisor by signals, in order of urgency.
enum class StopRequest : unsigned char { none, stop, stop_now };

/// Blocks SIGTERM, SIGINT, SIGHUP and SIGUSR1 in all threads of this process; `wait` returns them one by one, so that
/// they interrupt no other code. Make one object per process, before any thread.
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;

  /// Waits until a signal arrives, a child ends, or the time is over. The first SIGTERM, SIGINT, SIGHUP or SIGUSR1
  /// returns `stop`; a second SIGTERM or SIGINT `stop_now`. A signal that was ignored when the process started stays
  /// ignored.
  StopRequest wait(double seconds);

 private:
  int stops_ = 0;
};

/// Destination of a child's output.
enum class ChildOutput : unsigned char {
  ours,       ///< same destination as this process's output
  dropped,    ///< discarded
  overheard,  ///< as ours, but standard error goes through ChildProcess::said
};

/// A child process in its own process group, without standard input. Receives SIGTERM if this process is killed.
class ChildProcess {
 public:
  /// Throws InputError if the program does not exist.
  explicit ChildProcess(const std::vector<std::string>& command, ChildOutput output = ChildOutput::ours);
  /// Kills the child if it still runs.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept = delete;

  /// Its exit status, or 128 + the signal that ended it; nullopt while it runs. Does not wait.
  [[nodiscard]] std::optional<int> status();
  /// The signal that ended it; 0 if none did, or while it runs.
  [[nodiscard]] int ended_by() const noexcept { return signal_; }
  /// Forwards the standard error of an overheard child since the last call, at most 256 KiB per call. Returns the first
  /// of `texts` found in the output; empty if none. Does not wait for the child.
  [[nodiscard]] std::string_view said(std::span<const std::string_view> texts);
  void signal(int number) const noexcept;        ///< sends a signal to the child only
  void signal_group(int number) const noexcept;  ///< sends a signal to the child's process group

 private:
  pid_t pid_ = 0;
  std::optional<int> status_;
  int signal_ = 0;
  int errors_ = -1;     ///< pipe from the standard error of an overheard child
  std::string unread_;  ///< end of its output so far, which may begin one of the texts
};

}  // namespace ronda
