#include <ronda/collectives/members/placement.hpp>
#include <ronda/core/core_mask.hpp>
#include <ronda/core/cpu_quota.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

namespace ronda {
namespace {

std::string mpi_processor_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  mpi::check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
  return name.data();
}

mpi::Communicator node_of(const mpi::Communicator& communicator, int ranks_per_node) {
  mpi::Communicator host = communicator.split_by_node();
  if (ranks_per_node <= 0) return host;
  return host.split(host.rank() / ranks_per_node, host.rank());
}

/// The least that quotas leave each rank: those under one quota share it evenly. Infinite where there are none.
double share_of_quotas(const mpi::Communicator& node) {
  std::array<CpuQuota, 8> mine{};  // groups within groups; more have no limit of their own in practice
  const auto quotas = cpu_quotas();
  std::copy_n(quotas.begin(), std::min(quotas.size(), mine.size()), mine.begin());
  const auto all = node.allgather(mine);
  double share = std::numeric_limits<double>::infinity();
  for (const CpuQuota& quota : mine) {
    if (quota.cores == 0) continue;
    const auto ranks = std::ranges::count_if(
        all, [&](const auto& one) { return std::ranges::find(one, quota.group, &CpuQuota::group) != one.end(); });
    share = std::min(share, quota.cores / static_cast<double>(ranks));
  }
  return share;
}

/// Nothing has bound the first process of a machine or container to less than all of it.
std::size_t cores_of_machine() { return CoreMask::of(1).count(); }

}  // namespace

Placement Placement::of(const mpi::Communicator& communicator, int ranks_per_node) {
  Placement placement;
  placement.node = node_of(communicator, ranks_per_node);
  Topology& topology = placement.topology;
  topology.ranks_on_node = placement.node.size();
  topology.rank_on_node = placement.node.rank();

  const int lowest_here = placement.node.allgather(communicator.rank()).front();
  const bool speaks = lowest_here == communicator.rank();  // for its node
  const auto names = communicator.allgather_texts(speaks ? mpi_processor_name() : std::string());
  std::map<int, std::vector<int>> ranks_by_lowest;
  int rank = 0;
  for (const int lowest : communicator.allgather(lowest_here)) {
    ranks_by_lowest[lowest].push_back(rank++);
    topology.hosts.add(names[static_cast<std::size_t>(lowest)]);
  }

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
  const mpi::Communicator node = communicator.split_by_node();
  const CoreMask mine = CoreMask::of(0);
  std::vector<std::uint16_t> users(CoreMask::most);  // of each core: ranks of this node
  for (std::size_t core = 0; core < CoreMask::most; ++core) users[core] = mine.has(core) ? 1 : 0;
  node.add(users);

  CoreShare share{.mine = 0, .bound = 0};
  const auto used = CoreMask::most - static_cast<std::size_t>(std::ranges::count(users, 0));
  for (std::size_t core = 0; core < CoreMask::most; ++core)
    if (mine.has(core)) share.bound += 1.0 / users[core];
  share.bound = std::round(share.bound * 1e6) / 1e6;  // six sixths are one core
  share.crowded = share.bound < 1 && used < cores_of_machine();
  share.mine = std::min(share.bound, share_of_quotas(node));
  const auto shares = communicator.allgather(share.mine);
  share.least = *std::min_element(shares.begin(), shares.end());
  return share;
}

}  // namespace ronda
