#include <ronda/collectives/host/transport/mpi_fabric.hpp>
#include <ronda/collectives/host/transport/mpi_transport.hpp>
#include <ronda/collectives/host/transport/mpi_turn.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace ronda {
namespace {

std::string processor_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  mpi::check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name");
  return name.data();
}

/// One rank per host names it: texts from all ranks would take memory for each of them.
Roster roster_of(const mpi::Communicator& all) {
  Roster roster{.self = all.rank(), .hosts = {}, .neighbour = {}};
  const mpi::Communicator host = all.split_by_node();
  const int lowest_here = host.allgather(all.rank()).front();
  roster.neighbour = all.allgather(lowest_here);
  const auto names = all.allgather_texts(lowest_here == all.rank() ? processor_name() : std::string());
  for (const int lowest : roster.neighbour) roster.hosts.add(names[static_cast<std::size_t>(lowest)]);
  return roster;
}

}  // namespace

MpiFabric::MpiFabric(MPI_Comm original) : all_(mpi::Communicator::duplicate(original)), roster_(roster_of(all_)) {}

/// Another thread may hang inside MPI: then the process ends soon, and the communicator with it.
MpiFabric::~MpiFabric() {
  const auto turn = MpiTurn::of_process().take_within(std::chrono::milliseconds(100));
  if (turn.owns_lock())
    all_ = mpi::Communicator();
  else
    all_.leave_behind();
}

std::unique_ptr<FabricTransport> MpiFabric::open(Ranks ranks, FabricChannel channel) {
  return std::make_unique<MpiTransport>(all_.handle(), roster_.self, std::move(ranks), std::move(channel));
}

mpi::Communicator MpiFabric::communicator_of(const std::vector<int>& ranks) const {
  const bool all = ranks.size() == roster_.neighbour.size() && std::ranges::is_sorted(ranks);
  return all ? mpi::Communicator::duplicate(all_.handle()) : all_.of(ranks);
}

}  // namespace ronda
