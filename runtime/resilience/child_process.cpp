#include <ronda/runtime/core/error.hpp>
#include <ronda/runtime/resilience/child_process.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

namespace ronda {
namespace {

sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

/// In the child, between fork and exec: nothing but system calls. Says through `report` why it could not.
[[noreturn]] void become(char* const* arguments, bool silent, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  if (silent) {
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
  }
  execvp(arguments[0], arguments);
  const int error = errno;
  static_cast<void>(!write(report, &error, sizeof error));
  _exit(127);
}

}  // namespace

SignalInbox::SignalInbox() {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

SignalInbox::~SignalInbox() {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

Request SignalInbox::wait(double seconds) {
  const sigset_t signals = awaited_signals();
  const double whole = std::floor(seconds);
  const timespec time{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  const int signal = sigtimedwait(&signals, nullptr, &time);
  if (signal < 0 || signal == SIGCHLD) return Request::none;
  const bool hard = signal == SIGTERM || signal == SIGINT;
  if (hard && stops_++ > 0) return Request::stop_now;
  return Request::stop;
}

ChildProcess::ChildProcess(const std::vector<std::string>& command, bool silent) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> report{};
  if (pipe2(report.data(), O_CLOEXEC) != 0) throw ResourceError("no pipe: " + std::string(std::strerror(errno)));
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), silent, report[1]);
  const int fork_error = errno;
  close(report[1]);
  int error = pid_ < 0 ? fork_error : 0;
  if (pid_ > 0) static_cast<void>(!read(report[0], &error, sizeof error));  // ends without a word when it runs
  close(report[0]);
  if (error == 0) return;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  throw InputError("cannot start " + command.front() + ": " + std::strerror(error));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), status_(other.status_) {}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0 || status()) return;
  signal_group(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::status() {
  int word = 0;
  if (!status_ && waitpid(pid_, &word, WNOHANG) == pid_)
    status_ = WIFSIGNALED(word) ? 128 + WTERMSIG(word) : WEXITSTATUS(word);
  return status_;
}

void ChildProcess::signal(int number) const noexcept {
  if (!status_) kill(pid_, number);
}

void ChildProcess::signal_group(int number) const noexcept {
  if (!status_) kill(-pid_, number);
}

}  // namespace ronda
