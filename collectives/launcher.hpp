#pragma once

namespace ronda {

/// What the environment says of this process before MPI is initialised: Open MPI's and Hydra's mpirun, Slurm's srun,
/// PMIx.
struct Launcher {
  int rank = 0;
  int size = 1;
  int on_host = 0;                      ///< ranks on this one; 0: nobody said it
  bool several_hosts = false;           ///< or it cannot be told
  bool known = false;                   ///< some launcher has told of a rank
  const char* size_variable = nullptr;  ///< that `size` was read from; null where nobody said it

  [[nodiscard]] static Launcher from_environment();
};

/// What the environment says of other processes where no launcher of MPI is known: torchrun, Horovod, TensorFlow, Flux,
/// jsrun, PALS, MVAPICH2.
struct AnnouncedProcesses {
  int count = 1;                   ///< at least so many, this one included
  const char* variable = nullptr;  ///< that `count` was read from; null where no variable announces others

  [[nodiscard]] static AnnouncedProcesses from_environment();
};

/// Where this process was started by mpirun, or a daemon of its, and that is still there after so many seconds, it is
/// killed. For a job that ends because it hangs: mpirun may then wait for ever for a host that no longer answers, or
/// for itself. Leaves a process behind for this, which ends with the launcher.
void end_launcher_within(int seconds) noexcept;

}  // namespace ronda
