#include <ronda/collectives/members/members.hpp>

#include <utility>

namespace ronda {

Members::Members(Assembly& founding, const GroupLimits& limits, Ledger ledger)
    : engine_(founding.engine()),
      ledger_(std::move(ledger)),
      limits_(limits),
      placement_(Placement::of(fabric().roster(), *founding.ranks(), limits.ranks_per_node)),
      channels_(limits.channels, founding),
      all_(engine_, founding.ranks(), channels_.take()),
      on_node_(engine_, world_ranks(ranks_on_this_node()), channels_.take()) {
  placement_.topology.oversubscribed = limits.oversubscribed;
}

Ranks Members::world_ranks(const std::vector<int>& ranks) const {
  std::vector<int> of_world;
  for (const int rank : ranks) of_world.push_back(ledger_.world_rank(rank));
  return std::make_shared<const std::vector<int>>(std::move(of_world));
}

std::string Members::number_of_rank(std::size_t rank) const {
  return "rank " + std::to_string(ledger_.world_rank(static_cast<int>(rank)));
}

std::string Members::name_of_rank(std::size_t rank) const {
  return number_of_rank(rank) + " on " + topology().hosts[rank];
}

}  // namespace ronda
