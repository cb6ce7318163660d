#include <ronda/collectives/group/environment.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/core/process.hpp>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace ronda {
namespace {

/// Rank and size, as launchers name them; the innermost first, because Slurm's steps may hold the daemons of another.
/// SLURM_NTASKS is none of them: a batch script has it, and a rank too, but is no step.
constexpr std::array<std::pair<const char*, const char*>, 3> variables{{
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
}};

/// The same for systems that may start processes without one MPI.
constexpr std::array announced_sizes{"WORLD_SIZE",         "HOROVOD_SIZE",  "MV2_COMM_WORLD_SIZE",
                                     "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE", "PALS_LOCAL_SIZE"};
/// A rank above 0 announces other processes too.
constexpr std::array announced_ranks{"PALS_RANKID", "FLUX_TASK_RANK", "MV2_COMM_WORLD_RANK", "JSM_NAMESPACE_RANK",
                                     "HOROVOD_RANK"};
/// Sizes and ranks of MPI launchers, for environments without a complete pair: MPI itself did not find that job.
constexpr std::array lone_sizes{"PMI_SIZE", "OMPI_COMM_WORLD_SIZE"};
constexpr std::array lone_ranks{"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};

std::optional<int> number(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto value = environment_number(name); value && *value < (1L << 30)) return static_cast<int>(*value);
  return std::nullopt;
}

/// The first of these sizes above 1, or else of these ranks above 0; otherwise one process.
AnnouncedProcesses announced_by(std::span<const char* const> sizes, std::span<const char* const> ranks) {
  for (const char* variable : sizes)
    if (const auto size = number({variable}); size && *size > 1) return {*size, variable};
  for (const char* variable : ranks)
    if (const auto rank = number({variable}); rank && *rank > 0) return {*rank + 1, variable};
  return {};
}

/// TensorFlow's `{"cluster": {"worker": ["host:port", …]}, …}`: the addresses in it.
int tasks_of(std::string_view config) {
  int tasks = 0;
  for (std::size_t begin = config.find('"'); begin != config.npos; begin = config.find('"', begin + 1)) {
    const std::size_t end = config.find('"', begin + 1);
    const std::string_view text = config.substr(begin + 1, end == config.npos ? 0 : end - begin - 1);
    const std::size_t colon = text.rfind(':');
    if (colon != text.npos && text.find_first_not_of("0123456789", colon + 1) == text.npos) ++tasks;
    if (end == config.npos) break;
    begin = end;
  }
  return tasks;
}

}  // namespace

void end_launcher_within(int seconds) noexcept {
  const pid_t launcher = ::getppid();
  if (!is_launcher(launcher)) return;
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, launcher, 0));
  if (handle < 0) return;
  // A plain fork would call functions that MPI has left for the case.
  if (::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) != 0) return;
  ::setsid();
  ::prctl(PR_SET_NAME, "ronda-end");       // it is no rank
  for (int file = 0; file < 1024; ++file)  // above all those that the launcher reads, and waits to see closed
    if (file != handle) ::close(file);
  pollfd ended{handle, POLLIN, 0};
  if (::poll(&ended, 1, seconds * 1000) == 0) ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
  ::_exit(0);
}

Launcher Launcher::from_environment() {
  Launcher launcher;
  if (const auto rank = number({"PMIX_RANK"}))
    launcher = {
        .rank = *rank, .size = *rank + 2, .several_hosts = true, .known = true};  // how many there are, it does not say
  for (const auto& [rank_variable, size_variable] : variables) {
    const auto rank = number({rank_variable}), size = number({size_variable});
    if (!rank || !size) continue;
    launcher = {.rank = *rank, .size = *size, .several_hosts = true, .known = true, .size_variable = size_variable};
    break;
  }
  const auto on_node = number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  const auto nodes = number({"SLURM_STEP_NUM_NODES"});
  if (nodes) launcher.several_hosts = *nodes > 1;
  if (on_node) launcher.several_hosts = *on_node < launcher.size;
  if (on_node) launcher.on_host = *on_node;
  if (launcher.size == 1) launcher.several_hosts = false;
  return launcher;
}

AnnouncedProcesses AnnouncedProcesses::from_environment() {
  if (const auto found = announced_by(announced_sizes, announced_ranks); found.variable != nullptr) return found;
  const bool told = Launcher::from_environment().size_variable != nullptr;
  if (const auto found = announced_by(lone_sizes, lone_ranks); !told && found.variable != nullptr) return found;
  constexpr const char* tensorflow = "TF_CONFIG";
  const char* config = std::getenv(tensorflow);
  const int tasks = config == nullptr ? 0 : tasks_of(config);
  if (tasks > 1) return {tasks, tensorflow};
  return {};
}

}  // namespace ronda
