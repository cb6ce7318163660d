#include <ronda/collectives/members/placement.hpp>
#include <ronda/core/cores.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <utility>

namespace ronda {
namespace {

/// The least that quotas leave each rank: those under one quota share it evenly. Infinite where there are none.
double share_of_quotas(Assembly& host) {
  std::array<CpuQuota, 8> mine{};  // groups within groups; more have no limit of their own in practice
  const auto quotas = cpu_quotas();
  std::copy_n(quotas.begin(), std::min(quotas.size(), mine.size()), mine.begin());
  const auto all = host.gather(mine);
  double share = std::numeric_limits<double>::infinity();
  for (const CpuQuota& quota : mine) {
    if (quota.cores == 0) continue;
    const auto ranks = std::ranges::count_if(
        all, [&](const auto& one) { return std::ranges::find(one, quota.group, &CpuQuota::group) != one.end(); });
    share = std::min(share, quota.cores / static_cast<double>(ranks));
  }
  return share;
}

/// Both spans hold as many std::uint16_t.
void add_counts(std::span<std::byte> mine, std::span<const std::byte> other) {
  for (std::size_t at = 0; at < mine.size(); at += sizeof(std::uint16_t)) {
    std::uint16_t sum = 0, added = 0;
    std::memcpy(&sum, &mine[at], sizeof sum);
    std::memcpy(&added, &other[at], sizeof added);
    sum = static_cast<std::uint16_t>(sum + added);
    std::memcpy(&mine[at], &sum, sizeof sum);
  }
}

/// Nothing has bound the first process of a machine or container to less than all of it.
std::size_t cores_of_machine() { return CoreMask::of(1).count(); }

}  // namespace

Placement Placement::of(const Roster& world, const std::vector<int>& ranks, int ranks_per_node) {
  Placement placement;
  Topology& topology = placement.topology;
  std::map<int, int> ranks_of_host;                    // so far, by the host's lowest rank
  std::map<std::pair<int, int>, std::size_t> node_at;  // by that and the node's number on the host
  for (const int rank : ranks) {
    const int host = world.neighbour[static_cast<std::size_t>(rank)];
    const int on_host = ranks_of_host[host]++;
    const auto [found, is_new] = node_at.emplace(std::pair(host, ranks_per_node > 0 ? on_host / ranks_per_node : 0),
                                                 placement.ranks_of_node.size());
    if (is_new) placement.ranks_of_node.emplace_back();
    auto& node = placement.ranks_of_node[found->second];
    if (rank == world.self) {
      topology.node = static_cast<int>(found->second);
      topology.rank_on_node = static_cast<int>(node.size());
    }
    node.push_back(static_cast<int>(topology.hosts.size()));
    topology.hosts.add(world.hosts[static_cast<std::size_t>(rank)]);
  }
  topology.nodes = static_cast<int>(placement.ranks_of_node.size());
  topology.ranks_on_node = static_cast<int>(placement.ranks_of_node[static_cast<std::size_t>(topology.node)].size());
  topology.fewest_ranks_on_a_node = static_cast<int>(ranks.size());
  for (const auto& node : placement.ranks_of_node) {
    const int count = static_cast<int>(node.size());
    topology.most_ranks_on_a_node = std::max(topology.most_ranks_on_a_node, count);
    topology.fewest_ranks_on_a_node = std::min(topology.fewest_ranks_on_a_node, count);
  }
  return placement;
}

CoreShare share_cores(Assembly& all, Assembly& host) {
  const CoreMask mine = CoreMask::of(0);
  std::vector<std::uint16_t> users(CoreMask::most);  // of each core: ranks of this host
  for (std::size_t core = 0; core < CoreMask::most; ++core) users[core] = mine.has(core) ? 1 : 0;
  host.merge(std::as_writable_bytes(std::span(users)), add_counts);

  CoreShare share{.mine = 0, .bound = 0};
  const auto used = CoreMask::most - static_cast<std::size_t>(std::ranges::count(users, 0));
  for (std::size_t core = 0; core < CoreMask::most; ++core)
    if (mine.has(core)) share.bound += 1.0 / users[core];
  share.bound = std::round(share.bound * 1e6) / 1e6;  // six sixths are one core
  share.crowded = share.bound < 1 && used < cores_of_machine();
  share.mine = std::min(share.bound, share_of_quotas(host));
  const auto shares = all.gather(share.mine);
  share.least = *std::min_element(shares.begin(), shares.end());
  return share;
}

}  // namespace ronda
