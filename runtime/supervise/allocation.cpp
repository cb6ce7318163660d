#include <ronda/core/error.hpp>
#include <ronda/runtime/supervise/allocation.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace ronda {
namespace {

/// What scontrol makes of Slurm's `node[1-3,7]`: a name a line. The list is in the environment, so no shell reads it.
std::vector<std::string> names_of_allocation() {
  const std::unique_ptr<FILE, int (*)(FILE*)> output(popen("scontrol show hostnames \"$SLURM_JOB_NODELIST\"", "r"),
                                                     pclose);
  std::vector<std::string> names;
  std::array<char, 512> line{};
  while (output && fgets(line.data(), line.size(), output.get()) != nullptr) {
    std::string name = line.data();
    name.erase(name.find_last_not_of(" \n") + 1);
    if (!name.empty()) names.push_back(checked_host(name));
  }
  if (names.empty())
    throw InputError("scontrol does not tell the hosts of this Slurm allocation; name them with --hosts");
  return names;
}

}  // namespace

std::vector<Host> hosts_of_allocation() {
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  if (list == nullptr) return {};
  if (*list == '-') throw InputError("SLURM_JOB_NODELIST begins with '-', which is no list of hosts");
  const char* tasks = std::getenv("SLURM_TASKS_PER_NODE");
  const std::vector<int> slots = parse_tasks_per_node(tasks == nullptr ? "" : tasks);
  const std::vector<std::string> names = names_of_allocation();
  if (names.size() != slots.size())
    throw InputError("Slurm's allocation has " + std::to_string(names.size()) +
                     " hosts, but SLURM_TASKS_PER_NODE tells of " + std::to_string(slots.size()) +
                     "; name the hosts with --hosts");
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < names.size(); ++i) hosts.push_back({names[i], slots[i]});
  return hosts;
}

}  // namespace ronda
