#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/launch.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <thread>

namespace ronda {
namespace {

/// What the launcher is given to end, when all ranks have.
constexpr int launcher_seconds = 5;

void print_error(const std::string& text) { std::cerr << "ronda: error: " + text + "\n" << std::flush; }

/// What was thrown, told in one line, and what it means for the process.
struct Failure {
  std::string text;
  ExitStatus status = ExitStatus::failed;
  bool agreed = false;
  bool communication = false;  ///< MPI or another rank did not do its part

  /// Of the exception that is being handled.
  static Failure current(const SettingNames& names) {
    try {
      throw;
    } catch (const CommunicationError& error) {
      return {error.message().text_with(names), error.status(), error.agreed(), true};
    } catch (const Error& error) {
      return {error.message().text_with(names), error.status(), error.agreed()};
    } catch (const std::bad_alloc&) {
      return {"out of memory"};
    } catch (const std::exception& error) {
      return {error.what()};
    } catch (...) {
      return {"something that is no exception was thrown"};
    }
  }
};

/// Keeps ranks other than the first from saying on standard output what the first says.
class OneVoice {
 public:
  explicit OneVoice(int rank) : buffer_(rank == 0 ? nullptr : std::cout.rdbuf(nullptr)) {}
  OneVoice(const OneVoice&) = delete;
  ~OneVoice() {
    if (buffer_ == nullptr) return;
    std::cout.rdbuf(buffer_);  // which also clears the error of having had none
  }

 private:
  std::streambuf* buffer_;
};

/// On the watchdog's thread: what hangs cannot be asked to end.
[[noreturn]] void end_standing(const Stall& stall) {
  if (stall.speaks) print_error(stall.message);
  // The launcher reads the message before it sees anybody leave, and ends everything.
  std::this_thread::sleep_for(std::chrono::milliseconds(stall.speaks ? 200 : 500));
  end_launcher_within(launcher_seconds);
  std::_Exit(static_cast<int>(ExitStatus::failed));
}

/// The records of the ranks may tell who gave what, where messages that do not fit tell little.
std::string explained(const World& world, const Failure& failure) {
  const std::string why = failure.communication ? world.divergence() : std::string();
  return why.empty() ? failure.text : failure.text + "; " + why;
}

/// The others know nothing of this: tells why, and ends them all.
[[noreturn]] void end_all(World& world, const Failure& failure) {
  // The same error often occurs on several ranks: the lowest rank reports it first.
  if (world.rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(250 + 10 * std::min(world.rank(), 75)));
  const auto rank = static_cast<std::size_t>(world.rank());
  const std::string text = explained(world, failure);
  if (world.may_speak())
    print_error(world.communicator().group().members().name_of_rank(rank) + ": " + text);
  else
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the launcher reads the message before the end
  world.abort(static_cast<int>(failure.status));
}

/// The first rank speaks for all; every rank then ends in good order.
int end_together(const World& world, const Failure& failure) {
  if (world.rank() == 0) print_error(failure.text);
  return static_cast<int>(failure.status);
}

/// Before there was a world. What all ranks meet the launcher's first one tells; it ends the job by leaving, as any
/// does, so the others give it time.
int end_without_world(const Launcher& launcher, const Failure& failure) {
  if (failure.agreed && launcher.rank > 0)
    std::this_thread::sleep_for(std::chrono::seconds(2));
  else
    print_error(failure.text);
  return static_cast<int>(failure.status);
}

int run_body(World& world, const std::function<int(World&)>& body, const SettingNames& names) {
  Failure failure;
  try {
    return body(world);
  } catch (...) {
    failure = Failure::current(names);
  }
  const bool alike = failure.agreed || world.size() == 1 ||
                     (failure.status == ExitStatus::bad_input && world.all_fail(static_cast<int>(failure.status)));
  if (alike) return end_together(world, failure);
  end_all(world, failure);
}

/// A launcher that was killed takes its ranks along; Open MPI 5's would otherwise go on, or wait, for ever.
void end_with_launcher() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

/// Runs `prepare` on this rank; false where there is nothing more to do.
bool prepare_alone(const std::function<bool(WorldOptions&)>& prepare, WorldOptions& options, int rank,
                   std::exception_ptr& error) {
  const OneVoice voice(rank);
  try {
    return prepare(options);
  } catch (...) {
    error = std::current_exception();
    return true;
  }
}

}  // namespace

int launch(int argc, char** argv, const std::function<bool(WorldOptions&)>& prepare,
           const std::function<int(World&)>& body, const SettingNames& names) {
  unbind_first_thread();
  const Launcher launcher = Launcher::from_environment();
  if (launcher.size > 1) end_with_launcher();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write, as a full disk is
  std::signal(SIGPIPE, SIG_IGN);  // likewise a pipe whose reader has ended: `PROGRAM | tee log`, and Ctrl-C
  WorldOptions options;
  std::exception_ptr error;
  const bool go_on = prepare_alone(prepare, options, launcher.rank, error);
  if (!go_on && launcher.size == 1) return 0;
  try {
    if (error && launcher.size == 1) std::rethrow_exception(error);
    if (error) {
      options = WorldOptions();
      options.any_thread = true;  // as the others may ask for, who are to hear of the error
    }
    if (!options.on_stall) options.on_stall = end_standing;
    World world(argc, argv, options);
    const auto checked_body = [&](World& all) {
      // A bad command line is the same on all ranks mostly, but an option may name a file that one host has not.
      agree(all.communicator(), [&] {
        if (error) std::rethrow_exception(error);
      });
      // Some ranks may have been asked for help, and others to work.
      require_equal(all.communicator(), "what the ranks are asked to do", go_on ? "run" : "answer a question and end");
      return go_on ? body(all) : 0;
    };
    const int status = run_body(world, checked_body, names);
    // Before the ranks part: when one has left with a status that is not 0, a launcher ends those that have not.
    std::cout << std::flush;
    std::fflush(stdout);
    return status;
  } catch (...) {
    return end_without_world(launcher, Failure::current(names));
  }
}

int launch(int argc, char** argv, const std::function<int(World&)>& body) {
  return launch(
      argc, argv, [](WorldOptions&) { return true; }, body);
}

}  // namespace ronda
