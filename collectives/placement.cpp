#include <ronda/collectives/placement.hpp>

#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace ronda {
namespace {

using HostName = std::array<char, MPI_MAX_PROCESSOR_NAME>;

HostName host_name() {
  HostName name{};
  int length = 0;
  mpi::check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
  return name;
}

mpi::Communicator node_of(const mpi::Communicator& communicator, int ranks_per_node) {
  mpi::Communicator host = communicator.split_by_node();
  if (ranks_per_node <= 0) return host;
  return host.split(host.rank() / ranks_per_node, host.rank());
}

/// Nothing has bound the first process of a machine or container to less than all of it.
int cores_of_machine() {
  cpu_set_t all;
  return sched_getaffinity(1, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 0;
}

}  // namespace

Placement Placement::of(const mpi::Communicator& communicator, int ranks_per_node) {
  Placement placement;
  placement.node = node_of(communicator, ranks_per_node);
  Topology& topology = placement.topology;
  topology.ranks_on_node = placement.node.size();
  topology.rank_on_node = placement.node.rank();
  for (const HostName& name : communicator.allgather(host_name())) topology.hosts.emplace_back(name.data());

  const int lowest_here = placement.node.allgather(communicator.rank()).front();
  std::map<int, std::vector<int>> ranks_by_lowest;
  int rank = 0;
  for (const int lowest : communicator.allgather(lowest_here)) ranks_by_lowest[lowest].push_back(rank++);

  topology.nodes = static_cast<int>(ranks_by_lowest.size());
  topology.node = static_cast<int>(std::distance(ranks_by_lowest.begin(), ranks_by_lowest.find(lowest_here)));
  topology.fewest_ranks_on_a_node = communicator.size();
  for (auto& [lowest, ranks] : ranks_by_lowest) {
    const int count = static_cast<int>(ranks.size());
    topology.most_ranks_on_a_node = std::max(topology.most_ranks_on_a_node, count);
    topology.fewest_ranks_on_a_node = std::min(topology.fewest_ranks_on_a_node, count);
    placement.ranks_of_node.push_back(std::move(ranks));
  }
  return placement;
}

CoreShare share_cores(const mpi::Communicator& communicator) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
  const auto masks = communicator.split_by_node().allgather(mine);

  CoreShare share{0, 0};
  cpu_set_t used;
  CPU_ZERO(&used);
  for (const cpu_set_t& mask : masks) CPU_OR(&used, &used, &mask);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &mine)) continue;
    const auto users =
        std::count_if(masks.begin(), masks.end(), [&](const cpu_set_t& mask) { return CPU_ISSET(core, &mask); });
    share.mine += 1.0 / static_cast<double>(users);
  }
  share.mine = std::round(share.mine * 1e6) / 1e6;  // six sixths are one core
  share.crowded = share.mine < 1 && CPU_COUNT(&used) < cores_of_machine();
  const auto shares = communicator.allgather(share.mine);
  share.least = *std::min_element(shares.begin(), shares.end());
  return share;
}

}  // namespace ronda
