#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/checkpoint/checkpointer.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>
#include <ronda/runtime/trainer/leave.hpp>
#include <ronda/runtime/trainer/stop_signals.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>

#include "support/catch.hpp"
#include "support/message.hpp"

using namespace ronda;
using namespace ronda::test;

namespace leave_test {

TEST_CASE("intervals, durations and limits are read, and what is none is refused") {
  CHECK(parse_checkpoint_interval("100").steps == 100);
  CHECK(parse_checkpoint_interval("30s").seconds == 30);
  CHECK(parse_checkpoint_interval("1.5h").seconds == 5400);
  CHECK(parse_checkpoint_interval("10m").steps == 0);
  for (const char* bad :
       {"", "0", "-1", "1.5", "s", "0s", "10x", "10 m", "inf", "nans", "1e99h", "99999999999999999999"})
    CHECK_THROWS_AS(parse_checkpoint_interval(bad), InputError);
  CHECK(parse_time_limit("1:02:03") == 3723);
  CHECK(parse_time_limit("100:00:00") == 360000);
  CHECK(parse_time_limit("90s") == 90);
  for (const char* bad : {"", "0:0:0", "1:2", "1:60:00", "1:00:60", "::", "-1:0:0", "1:2:3:4", "a:b:c", "1:2:3 "})
    CHECK_THROWS_AS(parse_time_limit(bad), InputError);
}

TEST_CASE("faults are read as they are written, and happen once, on their rank") {
  CHECK(text_of(parse_fault("kill@12")) == "kill@12:0");
  CHECK(text_of(parse_fault("fail-write@3:7")) == "fail-write@3:7");
  for (const char* bad :
       {"", "kill", "kill@", "kill@x", "kill@1:", "kill@1:-1", "die@1", "@1", "kill@1:2:3", "kill:1@2"})
    CHECK_THROWS_AS(parse_fault(bad), InputError);
  Faults faults({parse_fault("fail-write@5:1"), parse_fault("fail-write@6:0")}, 1);
  CHECK_FALSE(faults.happens(FaultKind::fail_write, 4));
  CHECK_FALSE(faults.happens(FaultKind::kill_write, 9));
  CHECK(faults.happens(FaultKind::fail_write, 8));
  CHECK_FALSE(faults.happens(FaultKind::fail_write, 8));
}

TEST_CASE("the time has come: by the limit, by the end of the allocation, or by wish") {
  unsetenv("SLURM_JOB_END_TIME");
  CHECK_FALSE(LeaveRequest(0, {}).due(0));
  CHECK_FALSE(LeaveRequest(3600, {}).due(1e9));
  CHECK(LeaveRequest(1e-9, {}).due(0));
  CHECK(LeaveRequest(1e-9, {}).reason(0).text().find(".time_limit") != std::string::npos);
  bool wish = false;
  const LeaveRequest asked(0, [&] { return wish; });
  CHECK_FALSE(asked.due(0));
  wish = true;
  CHECK(asked.due(0));
  const auto allocation_of = [](long seconds) {
    setenv("SLURM_JOB_END_TIME", std::to_string(std::time(nullptr) + seconds).c_str(), 1);
    return LeaveRequest(0, {});
  };
  constexpr long long_ago = -100000;  // before this process started: left over from an interactive shell
  CHECK_FALSE(allocation_of(long_ago).due(0));
  require_mentions(allocation_of(long_ago).note(), {"SLURM_JOB_END_TIME=", "leftover", "unset it"});
  CHECK(allocation_of(20).note().empty());
  CHECK_FALSE(allocation_of(20).due(1000));  // a fifth is for saving, no more
  CHECK_FALSE(allocation_of(100000).due(5000));
  CHECK_FALSE(allocation_of(100000).due(9900));
  setenv("SLURM_JOB_END_TIME", "soon", 1);
  CHECK_FALSE(LeaveRequest(0, {}).due(0));
  unsetenv("SLURM_JOB_END_TIME");
}

TEST_CASE("the first signal is a wish, whichever it is; a second SIGINT ends at once") {
  // In processes of their own: what a signal leaves is for the rest of a process's life.
  const auto status_after = [](std::initializer_list<int> signals) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);  // in the background of a script it is ignored
      const StopSignals listening;
      for (const int signal : signals) raise(signal);
      _exit(listening.received() ? 75 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  };
  CHECK(status_after({}) == 0);
  CHECK(status_after({SIGINT}) == 75);
  CHECK(status_after({SIGTERM}) == 75);
  CHECK(status_after({SIGUSR1}) == 75);
  CHECK(status_after({SIGTERM, SIGTERM, SIGUSR1, SIGINT, SIGTERM}) == 75);
  CHECK(status_after({SIGINT, SIGINT}) == -SIGINT);
  CHECK(status_after({SIGTERM, SIGINT, SIGINT}) == -SIGINT);
}

TEST_CASE("SIGHUP is a wish as well, and signals that were ignored stay so") {
  const auto received = [](int signal, bool ignored) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(signal, ignored ? SIG_IGN : SIG_DFL);
      const StopSignals listening;
      raise(signal);
      _exit(listening.received() ? 75 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  };
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    CHECK(received(signal, false) == 75);
    CHECK(received(signal, true) == 0);
  }
}

TEST_CASE("a training that is not saved takes a scheduler's warning, and no other signal") {
  const auto ended_by = [](int signal) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGINT, SIG_DFL);
      const StopSignals listening(StopSignals::Taken::warnings);
      raise(signal);
      _exit(listening.received() ? 75 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  };
  CHECK(ended_by(SIGUSR1) == 75);
  CHECK(ended_by(SIGTERM) == -SIGTERM);
  CHECK(ended_by(SIGINT) == -SIGINT);
}

TEST_CASE("signals are wishes, and given back where none came") {
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  {
    const StopSignals signals;
    CHECK_FALSE(signals.received());
  }
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  {
    const StopSignals signals;
    raise(SIGUSR1);
    CHECK(signals.received());
  }
  raise(SIGTERM);  // ignored from then on
}

}  // namespace leave_test
