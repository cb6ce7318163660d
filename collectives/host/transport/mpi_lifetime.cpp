#include <ronda/collectives/host/transport/mpi_lifetime.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>
#include <string>

namespace ronda {
namespace {

/// Started by another MPI's launcher, every rank would be a world of its own, and train alone.
void require_launchers_ranks() {
  const Launcher launcher = Launcher::from_environment();
  int size = 0;
  mpi::check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (launcher.size_variable == nullptr || size >= launcher.size) return;
  const std::string variable = launcher.size_variable;
  InputError error("expected " + std::to_string(launcher.size) + " ranks (" + variable + "), found " +
                   std::to_string(size) + ": the launcher does not reach the MPI that this program was built with, " +
                   mpi::library_name() +
                   "; take the mpirun of that MPI, or srun --mpi=pmix (Open MPI), --mpi=pmi2 (MPICH); " +
                   "for a run alone, unset " + variable);
  error.set_agreed();
  throw error;
}

}  // namespace

MpiLifetime::MpiLifetime(int& argc, char**& argv, int wanted_level, Ledger& ledger) : recorder_(ledger.recorder) {
  const RecordedCall call(ledger, "MPI_Init");
  const InsideMpi inside(recorder_.get());
  int initialized = 0;
  mpi::check(MPI_Initialized(&initialized), "MPI_Initialized");
  if (initialized != 0)
    throw LogicError(
        "MPI is initialised already, and no process can do that twice; take World::adopt (in C: "
        "ronda_init_comm, ronda_kv_open_comm)");
  int level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Init_thread(&argc, &argv, wanted_level, &level), "MPI_Init_thread");
  mpi::check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  require_launchers_ranks();
}

MpiLifetime::~MpiLifetime() {
  if (std::uncaught_exceptions() > exceptions_before_) return;
  const InsideMpi inside(recorder_.get());
  MPI_Finalize();
  if (recorder_ != nullptr) recorder_->end_last();
}

bool any_thread_may_call(const mpi::Communicator& communicator, bool is_ours_alone) {
  int level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  return communicator.all(level >= (is_ours_alone ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE));
}

}  // namespace ronda
