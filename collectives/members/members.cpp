#include <ronda/collectives/members/members.hpp>

#include <utility>

namespace ronda {

Members::Members(Assembly& founding, std::shared_ptr<MpiFabric> fabric, const GroupLimits& limits, Ledger ledger)
    : engine_(founding.engine()),
      fabric_(std::move(fabric)),
      ledger_(std::move(ledger)),
      limits_(limits),
      placement_(Placement::of(fabric_->roster(), *founding.ranks(), limits.ranks_per_node)),
      channels_(limits.channels, founding),
      all_(engine_, fabric_, founding.ranks(), channels_.take()),
      on_node_(engine_, fabric_, world_ranks(ranks_on_this_node()), channels_.take()) {
  placement_.topology.oversubscribed = limits.oversubscribed;
}

Members::~Members() {
  const bool freed = engine_->in_turn([&] {
    plain_mpi_ = mpi::Communicator();
    limits_.mpi_operations.reset();
  });
  if (freed) return;
  plain_mpi_.leave_behind();
  new std::shared_ptr(limits_.mpi_operations);
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
