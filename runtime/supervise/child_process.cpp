#include <ronda/core/error.hpp>
#include <ronda/runtime/supervise/child_process.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

namespace ronda {
namespace {

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Without those that this process was started to ignore, as SIGHUP by nohup. Blocked signals would come nevertheless.
sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1})
    if (!is_ignored(signal)) sigaddset(&set, signal);
  return set;
}

/// Closes with the children that are not given it, and with this.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw ResourceError("no pipe: " + std::string(std::strerror(errno)));
    read = ends[0];
    write = ends[1];
  }
  Pipe(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : {read, write})
      if (end >= 0) close(end);
  }
  int read, write;
};

/// In the child, between fork and exec: nothing but system calls. Says through `report` why it could not.
[[noreturn]] void become(char* const* arguments, ChildOutput output, int errors, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // this process may ignore it
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  if (output == ChildOutput::dropped) {
    dup2(nothing, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
  }
  if (output == ChildOutput::overheard) dup2(errors, STDERR_FILENO);
  execvp(arguments[0], arguments);
  const int error = errno;
  static_cast<void>(!write(report, &error, sizeof error));
  _exit(127);
}

/// To standard error, all of it unless that is closed.
void pass_on(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {  // whoever opened it wants nobody to wait; but this has to
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return;
    }
  }
}

}  // namespace

SignalInbox::SignalInbox() {
  std::signal(SIGCHLD, SIG_DFL);  // ignored, the children's statuses would be lost
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

SignalInbox::~SignalInbox() {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

StopRequest SignalInbox::wait(double seconds) {
  const sigset_t signals = awaited_signals();
  const double whole = std::floor(seconds);
  const timespec time{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  const int signal = sigtimedwait(&signals, nullptr, &time);
  if (signal < 0 || signal == SIGCHLD) return StopRequest::none;
  const bool hard = signal == SIGTERM || signal == SIGINT;
  if (hard && stops_++ > 0) return StopRequest::stop_now;
  return StopRequest::stop;
}

ChildProcess::ChildProcess(const std::vector<std::string>& command, ChildOutput output) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Pipe report, errors;
  pid_ = fork();
  if (pid_ == 0) become(arguments.data(), output, errors.write, report.write);
  const int fork_error = errno;
  close(std::exchange(report.write, -1));
  int error = pid_ < 0 ? fork_error : 0;
  if (pid_ > 0) static_cast<void>(!read(report.read, &error, sizeof error));  // ends without a word when it runs
  if (error == 0 && output == ChildOutput::overheard) {
    errors_ = std::exchange(errors.read, -1);
    fcntl(errors_, F_SETFL, O_NONBLOCK);
  }
  if (error == 0) return;
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  throw InputError("cannot start " + command.front() + ": " + std::strerror(error));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      status_(other.status_),
      signal_(other.signal_),
      errors_(std::exchange(other.errors_, -1)),
      unread_(std::move(other.unread_)) {}

ChildProcess::~ChildProcess() {
  if (errors_ >= 0) close(errors_);
  if (pid_ <= 0 || status()) return;
  signal_group(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::status() {
  int word = 0;
  if (!status_ && waitpid(pid_, &word, WNOHANG) == pid_) {
    if (WIFSIGNALED(word)) signal_ = WTERMSIG(word);
    status_ = signal_ != 0 ? 128 + signal_ : WEXITSTATUS(word);
  }
  return status_;
}

std::string_view ChildProcess::said(std::span<const std::string_view> texts) {
  constexpr int most = 64;  // pieces at a time, which a pipe does not hold: who calls has signals and limits to heed
  std::array<char, 4096> piece{};
  ssize_t bytes = 0;
  std::string_view found;
  std::size_t longest = 1;
  for (const auto text : texts) longest = std::max(longest, text.size());
  for (int i = 0; errors_ >= 0 && i < most && (bytes = read(errors_, piece.data(), piece.size())) > 0; ++i) {
    const std::string_view heard(piece.data(), static_cast<std::size_t>(bytes));
    pass_on(heard);
    unread_ += heard;
    for (const auto text : texts)
      if (found.empty() && unread_.find(text) != std::string::npos) found = text;
    unread_.erase(0, unread_.size() - std::min(unread_.size(), longest - 1));
  }
  return found;
}

void ChildProcess::signal(int number) const noexcept {
  if (!status_) kill(pid_, number);
}

void ChildProcess::signal_group(int number) const noexcept {
  if (!status_) kill(-pid_, number);
}

}  // namespace ronda
