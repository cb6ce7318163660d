#include <ronda/collectives/launcher.hpp>

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <optional>
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

std::optional<int> number(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') continue;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (*end == '\0' && value >= 0 && value < (1L << 30)) return static_cast<int>(value);
  }
  return std::nullopt;
}

}  // namespace

Launcher Launcher::from_environment() {
  Launcher launcher;
  if (const auto rank = number({"PMIX_RANK"}))
    launcher = {*rank, *rank + 2, true};  // how many there are, it does not say
  for (const auto& [rank_variable, size_variable] : variables) {
    const auto rank = number({rank_variable}), size = number({size_variable});
    if (!rank || !size) continue;
    launcher = {*rank, *size, true, size_variable};
    break;
  }
  const auto on_node = number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  const auto nodes = number({"SLURM_STEP_NUM_NODES"});
  if (nodes) launcher.several_hosts = *nodes > 1;
  if (on_node) launcher.several_hosts = *on_node < launcher.size;
  if (launcher.size == 1) launcher.several_hosts = false;
  return launcher;
}

}  // namespace ronda
