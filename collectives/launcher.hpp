#pragma once

namespace ronda {

/// What the environment says of this process before MPI is initialised: Open MPI's and Hydra's mpirun, Slurm's srun,
/// PMIx.
struct Launcher {
  int rank = 0;
  int size = 1;
  bool several_hosts = false;           ///< or it cannot be told
  const char* size_variable = nullptr;  ///< that `size` was read from; null where nobody said it

  [[nodiscard]] static Launcher from_environment();
};

}  // namespace ronda
