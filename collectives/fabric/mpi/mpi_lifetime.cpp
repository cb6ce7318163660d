#include <ronda/collectives/fabric/mpi/mpi_lifetime.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <array>

namespace ronda {
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
}

MpiLifetime::~MpiLifetime() {
  if (std::uncaught_exceptions() > exceptions_before_ || mpi::is_over()) return;
  const InsideMpi inside(recorder_.get());
  MPI_Finalize();
  if (recorder_ != nullptr) recorder_->end_last();
}

}  // namespace ronda
