#include <ronda/collectives/launcher.hpp>

#include <cstdlib>
#include <initializer_list>
#include <optional>

namespace ronda {
namespace {

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
  const auto rank = number({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"});
  const auto size = number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
  const auto on_node = number({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
  const auto nodes = number({"SLURM_STEP_NUM_NODES"});
  // A batch script's own environment names a size, but only what the launcher started has a rank.
  if (!rank) return {};
  Launcher launcher{*rank, size.value_or(*rank + 2), true};
  if (on_node && size) launcher.several_hosts = *on_node < *size;
  if (nodes) launcher.several_hosts = *nodes > 1;
  if (launcher.size == 1) launcher.several_hosts = false;
  return launcher;
}

}  // namespace ronda
