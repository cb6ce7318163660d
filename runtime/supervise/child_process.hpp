#pragma once
#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ronda {

/// What the signals that ask a supervisor for something have asked for, in order of urgency.
enum class StopRequest : unsigned char { none, stop, stop_now };

/// SIGTERM, SIGINT, SIGHUP and SIGUSR1 of this process, held back from its threads and handed out one by one where they
/// are waited for; so nothing happens at other places. One object a process, made before any thread.
class SignalInbox {
 public:
  SignalInbox();
  ~SignalInbox();
  SignalInbox(const SignalInbox&) = delete;

  /// Waits so long, or until a signal comes or a child ends. The first SIGTERM, SIGINT, SIGHUP or SIGUSR1 asks to stop;
  /// a second SIGTERM or SIGINT to stop now. A signal that was ignored when the process started stays ignored.
  StopRequest wait(double seconds);

 private:
  int stops_ = 0;
};

/// What becomes of what a child says.
enum class ChildOutput : unsigned char {
  ours,       ///< it goes where this process's goes
  dropped,    ///< nowhere
  overheard,  ///< as ours, but standard error by way of ChildProcess::said
};

/// A program run beside this one, in a process group of its own and without standard input. It is sent SIGTERM where
/// this process is killed.
class ChildProcess {
 public:
  /// Throws InputError where there is no such program.
  explicit ChildProcess(const std::vector<std::string>& command, ChildOutput output = ChildOutput::ours);
  /// Kills it where it still runs.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept = delete;

  /// Its exit status, 128 + the signal where one ended it; nothing where it still runs. Does not wait.
  [[nodiscard]] std::optional<int> status();
  /// The signal that ended it; 0: none did, or it still runs.
  [[nodiscard]] int ended_by() const noexcept { return signal_; }
  /// Passes on what an overheard child has said on standard error since the last call, a good piece of it at most while
  /// it runs; the first of `texts` that was among it, empty where none was. Does not wait for the child.
  [[nodiscard]] std::string_view said(std::span<const std::string_view> texts);
  void signal(int number) const noexcept;        ///< to it alone
  void signal_group(int number) const noexcept;  ///< to it and all it started that stayed in its group

 private:
  pid_t pid_ = 0;
  std::optional<int> status_;
  int signal_ = 0;
  int errors_ = -1;     ///< the pipe that an overheard child says its errors to
  std::string unread_;  ///< the end of what it has said, where one of the texts may have begun
};

}  // namespace ronda
