// Worlds over MPI: with an MPI of their own, and adopted ones.
#include <ronda/collectives/fabric/mpi/mpi_fabric.hpp>
#include <ronda/collectives/fabric/mpi/mpi_lifetime.hpp>
#include <ronda/collectives/group/environment.hpp>
#include <ronda/collectives/group/foundation.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/error.hpp>

#include <memory>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// The launcher of the environment, with MPI's own rank and size, which the environment may lack or have wrong.
Launcher ranks_of(MPI_Comm communicator) {
  Launcher ranks = Launcher::from_environment();
  mpi::check(MPI_Comm_rank(communicator, &ranks.rank), "MPI_Comm_rank");
  mpi::check(MPI_Comm_size(communicator, &ranks.size), "MPI_Comm_size");
  ranks.several_hosts = ranks.size > 1 && (ranks.several_hosts || !ranks.known);
  return ranks;
}

/// @param agreed  all ranks throw it, so that one of them prints it
[[noreturn]] void refuse(const std::string& text, bool agreed = true) {
  InputError error(text);
  if (agreed) error.set_agreed();
  throw error;
}

/// Throws if MPI has fewer ranks than its launcher started, or a single rank although the environment announces more
/// processes: each process would then be a world and a training of its own.
/// @param launcher, announced  read before MPI was initialised: MPI sets its launcher's variables for a single process,
/// too
void require_announced_ranks(const Launcher& launcher, const AnnouncedProcesses& announced) {
  if (from_environment("RONDA_ALONE", 0) > 0) return;
  int size = 0;
  mpi::check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (launcher.size_variable != nullptr && size < launcher.size)
    refuse("expected " + std::to_string(launcher.size) + " ranks (" + launcher.size_variable + "), found " +
           std::to_string(size) + ": the launcher does not reach the MPI that this program was built with, " +
           mpi::library_name() + "; take the mpirun of that MPI, or srun --mpi=pmix (Open MPI), --mpi=pmi2 (MPICH); " +
           "for a run alone, set RONDA_ALONE=1");
  const bool one_of_several = launcher.size_variable == nullptr && launcher.rank > 0;
  if (size > 1 || (launcher.known && !one_of_several)) return;
  if (announced.variable != nullptr)
    refuse("expected " + std::to_string(announced.count) + " processes (" + announced.variable +
               "), found a rank alone: every process would train by itself, because no launcher of MPI started them; "
               "start the ranks by the mpirun of " +
               mpi::library_name() + ", or by srun; for a run alone, set RONDA_ALONE=1",
           !one_of_several);
}

/// Whether MPI knows this communicator. An unknown handle does not end the process here.
bool is_communicator(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) return false;
  MPI_Errhandler usual = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &usual);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // for handles that MPI does not know
  int ranks = 0;
  int between_groups = 0;
  const bool known = MPI_Comm_size(communicator, &ranks) == MPI_SUCCESS &&
                     MPI_Comm_test_inter(communicator, &between_groups) == MPI_SUCCESS && between_groups == 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, usual);
  MPI_Errhandler_free(&usual);
  return known;
}

/// The highest thread level that the later choice of progress may need: before MPI begins, the hosts are unknown.
int level_to_ask_for(const WorldOptions& options) {
  const bool thread = options.any_thread || options.progress == Progress::thread ||
                      (options.progress == Progress::automatic && Launcher::from_environment().several_hosts);
  return thread ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;  // the watchdog's thread never calls MPI
}

/// Waits inside MPI for the other ranks.
std::unique_ptr<Fabric> fabric_over(MPI_Comm communicator, bool owns_mpi, Watched& watched) {
  const RecordedCall call(watched.ledger, "meeting the other ranks");
  return std::make_unique<MpiFabric>(communicator, owns_mpi, watched.recorder);
}

}  // namespace

World::World(int& argc, char**& argv, const WorldOptions& options) : World(over_mpi(argc, argv, options), options) {}

/// Initialises MPI.
World::Foundation World::over_mpi(int& argc, char**& argv, const WorldOptions& options) {
  require_sense(options);
  const Launcher launcher = Launcher::from_environment();
  const AnnouncedProcesses announced = AnnouncedProcesses::from_environment();
  Watched watched;
  if (launcher.known) watched = Watched::begin(launcher, options);
  const auto lifetime = std::make_shared<MpiLifetime>(argc, argv, level_to_ask_for(options), watched.ledger);
  require_announced_ranks(launcher, announced);
  if (!launcher.known) {  // only MPI knows the number of ranks
    watched = Watched::begin(ranks_of(MPI_COMM_WORLD), options);
    lifetime->record_end(watched.recorder);
  }
  auto fabric = fabric_over(MPI_COMM_WORLD, true, watched);
  return {std::move(watched), lifetime, std::move(fabric)};
}

template <>
World World::adopt<MPI_Comm>(MPI_Comm communicator, const WorldOptions& options) {
  require_sense(options);
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0)
    throw LogicError("World::adopt is for programs that have initialised MPI, and not yet finalized it");
  auto turn = MpiTurn::of_process().take();  // another world's thread may be at work
  if (!is_communicator(communicator))
    throw InputError("this is no communicator of one group of ranks that MPI knows, so it cannot be adopted");
  int relation = MPI_UNEQUAL;
  mpi::check(MPI_Comm_compare(communicator, MPI_COMM_WORLD, &relation), "MPI_Comm_compare");
  if (relation == MPI_IDENT) require_announced_ranks({}, AnnouncedProcesses::from_environment());
  const Launcher ranks = ranks_of(communicator);
  turn.unlock();
  Watched watched = Watched::begin(ranks, options, name_apart());
  auto fabric = fabric_over(communicator, false, watched);
  return World(Foundation{std::move(watched), nullptr, std::move(fabric)}, options);
}

}  // namespace ronda
