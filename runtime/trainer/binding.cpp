#include <ronda/runtime/core/core_mask.hpp>
#include <ronda/runtime/trainer/binding.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace ronda {
namespace {

/// `0-3 | 4-7 on node1 and 2 hosts like it; 0-7 on node4`: ranks in ascending order, between bars.
std::string by_host(const std::vector<std::string>& cores_of_rank, const std::vector<std::string>& host_of_rank) {
  std::map<std::string, std::string> cores_of_host;
  for (std::size_t rank = 0; rank < cores_of_rank.size(); ++rank) {
    std::string& cores = cores_of_host[host_of_rank[rank]];
    cores += (cores.empty() ? "" : " | ") + cores_of_rank[rank];
  }
  std::map<std::string, std::vector<std::string>> hosts_with;
  for (const auto& [host, cores] : cores_of_host) hosts_with[cores].push_back(host);
  std::string text;
  for (const auto& [cores, hosts] : hosts_with) {
    text += (text.empty() ? "" : "; ") + cores + " on " + hosts.front();
    if (hosts.size() > 1) text += " and " + std::to_string(hosts.size() - 1) + " like it";
  }
  return text;
}

}  // namespace

void tell_binding(const World& world, int threads, EventSink& sink) {
  const Communicator& communicator = world.communicator();
  const auto& hosts = communicator.topology().hosts;
  const auto cores = communicator.gather_texts(CoreMask::of(0).text());
  sink.on_detail("cores by rank: " + by_host(cores, hosts) + "; threads of each: " + std::to_string(threads) +
                 ", progress " + std::string(name_of(world.progress())));

  const auto crowded = communicator.gather_texts(world.crowded() ? "yes" : "no");
  const auto first = std::find(crowded.begin(), crowded.end(), "yes");
  if (first == crowded.end()) return;
  const auto rank = static_cast<std::size_t>(first - crowded.begin());
  sink.on_warning("rank " + std::to_string(rank) + " on " + hosts[rank] + " and others share cores (" + cores[rank] +
                  ") though the host has some that no rank may run on; start the ranks by mpirun --bind-to core, or by "
                  "srun --cpu-bind=cores with enough --cpus-per-task");
}

}  // namespace ronda
