#pragma once

namespace ronda {

/// What the environment says of this process before MPI is initialised: Open MPI's and Hydra's mpirun, Slurm's srun,
/// PMIx.
struct Launcher {
  int rank = 0;
  int size = 1;
  int on_host = 0;                      ///< ranks on this host; 0: unknown
  bool several_hosts = false;           ///< true also if unknown
  bool known = false;                   ///< a launcher has set a rank
  const char* size_variable = nullptr;  ///< the variable that `size` was read from; null: none

  [[nodiscard]] static Launcher from_environment();
};

/// What the environment says of other processes where no launcher has told how many ranks there are: torchrun, Horovod,
/// TensorFlow, Flux, jsrun, PALS, MVAPICH2, and launchers of MPI that tell a rank, or a size, alone.
struct AnnouncedProcesses {
  int count = 1;                   ///< a lower bound, with this process
  const char* variable = nullptr;  ///< the variable that `count` was read from; null: none announces others

  [[nodiscard]] static AnnouncedProcesses from_environment();
};

/// Kills the mpirun, or its daemon, that started this process if it still runs after so many seconds. For a job that
/// ends because it hangs: mpirun may then wait for ever for a host that no longer answers, or for itself. Leaves a
/// process behind for this, which ends with the launcher.
void end_launcher_within(int seconds) noexcept;

}  // namespace ronda
