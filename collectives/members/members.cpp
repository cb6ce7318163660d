#include <ronda/collectives/members/members.hpp>

#include <utility>

namespace ronda {

Members::Members(std::shared_ptr<Engine> engine, mpi::Communicator communicator, const GroupLimits& limits,
                 Ledger ledger)
    : engine_(std::move(engine)),
      ledger_(std::move(ledger)),
      all_(std::move(communicator)),
      limits_(limits),
      placement_(Placement::of(all_, limits.ranks_per_node)),
      rank_(all_.rank()),
      size_(all_.size()) {
  placement_.topology.oversubscribed = limits.oversubscribed;
}

Members::~Members() {
  const bool freed = engine_->in_turn([&] {
    all_ = mpi::Communicator();
    plain_mpi_ = mpi::Communicator();
    placement_.node = mpi::Communicator();
    limits_.mpi_operations.reset();
  });
  if (freed) return;
  for (mpi::Communicator* const communicator : {&all_, &plain_mpi_, &placement_.node}) communicator->leave_behind();
  new std::shared_ptr(limits_.mpi_operations);
}

std::string Members::number_of_rank(std::size_t rank) const {
  return "rank " + std::to_string(ledger_.world_rank(static_cast<int>(rank)));
}

std::string Members::name_of_rank(std::size_t rank) const {
  return number_of_rank(rank) + " on " + topology().hosts[rank];
}

}  // namespace ronda
