#include <ronda/collectives/fabric/mpi/mpi_fabric.hpp>
#include <ronda/collectives/fabric/mpi/mpi_transport.hpp>
#include <ronda/collectives/fabric/mpi/mpi_turn.hpp>
#include <ronda/collectives/host/engine/backoff.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
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

/// The minimum or maximum over all ranks. Other threads of this process can call MPI while this one waits: the ranks
/// may need messages of theirs first.
std::uint64_t reduced(std::uint64_t mine, MPI_Op op, MPI_Comm communicator) {
  std::uint64_t result = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto turn = MpiTurn::of_process().take();
    mpi::check(MPI_Iallreduce(&mine, &result, 1, MPI_UINT64_T, op, communicator, &request), "MPI_Iallreduce");
  }
  Backoff backoff(true, steady_clock());
  for (int done = 0; done == 0; backoff.pause()) {
    const auto turn = MpiTurn::of_process().take();
    mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  }
  return result;
}

/// Waits for all ranks, and draws the world's priority: equal on all ranks, different for each world.
std::uint64_t meet(MPI_Comm communicator) {
  std::random_device random;
  return reduced(std::uint64_t{random()} << 32 | random(), MPI_MAX, communicator);
}

}  // namespace

template <class Work>
void MpiFabric::wait_in_mpi(const std::function<bool(bool)>& all, Work&& work) {
  const auto reservation = turn_.reserve(priority_, all);
  const auto turn = turn_.take_to_wait();
  const InsideMpi inside(recorder_.get());
  work();
}

MpiFabric::MpiFabric(MPI_Comm original, bool owns_mpi, std::shared_ptr<Recorder> recorder)
    : owns_mpi_(owns_mpi), recorder_(std::move(recorder)) {
  const InsideMpi inside(recorder_.get());
  priority_ = meet(original);
  wait_in_mpi([&](bool mine) { return reduced(mine ? 1 : 0, MPI_MIN, original) == 1; },
              [&] {
                all_ = mpi::Communicator::duplicate(original);
                operations_.emplace();
                roster_ = roster_of(all_);
              });
}

/// If another thread hangs inside MPI, the objects of MPI stay until the process ends, which is soon.
MpiFabric::~MpiFabric() {
  const auto turn = turn_.take_within(std::chrono::milliseconds(100));
  if (turn.owns_lock()) {
    operations_.reset();
    all_ = mpi::Communicator();
  } else {
    operations_->leave_behind();
    all_.leave_behind();
  }
}

std::unique_ptr<FabricTransport> MpiFabric::open(Ranks ranks, FabricChannel channel) {
  return std::make_unique<MpiTransport>(all_.handle(), roster_.self, std::move(ranks), std::move(channel));
}

bool MpiFabric::takes_any_thread(bool promised) const {
  int level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  return level >= (owns_mpi_ || promised ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE);
}

std::unique_ptr<FabricAllreduces> MpiFabric::own_allreduces(const Ranks& ranks, const std::function<bool(bool)>& all) {
  mpi::Communicator own;
  wait_in_mpi(all, [&] {
    const bool everybody = ranks->size() == roster_.neighbour.size() && std::ranges::is_sorted(*ranks);
    own = everybody ? mpi::Communicator::duplicate(all_.handle()) : all_.of(*ranks);
  });
  return std::make_unique<MpiAllreduces>(std::move(own), *operations_);
}

void MpiFabric::abort(int status) noexcept {
  if (!mpi::is_over()) MPI_Abort(MPI_COMM_WORLD, status);
}

}  // namespace ronda
