#pragma once

namespace ronda {

/// This process's place in the job, from the environment before MPI is initialised: variables of Open MPI's and Hydra's
/// mpirun, Slurm's srun, and PMIx.
struct Launcher {
  int rank = 0;
  int size = 1;
  int on_host = 0;                      ///< ranks on this host; 0: unknown
  bool several_hosts = false;           ///< true also if unknown
  bool known = false;                   ///< a launcher has set a rank
  const char* size_variable = nullptr;  ///< the variable with the `size`; null: none

  [[nodiscard]] static Launcher from_environment();
};

/// Other processes announced by the environment, for processes whose launcher gives no number of ranks: variables of
/// torchrun, Horovod, TensorFlow, Flux, jsrun, PALS, MVAPICH2, and of MPI launchers that set only a rank or only a
/// size.
struct AnnouncedProcesses {
  int count = 1;                   ///< a lower bound, including this process
  const char* variable = nullptr;  ///< the variable with the `count`; null: no other processes are announced

  [[nodiscard]] static AnnouncedProcesses from_environment();
};

/// Kills the mpirun or its daemon that started this process if it still runs after `seconds`. For a job that ends
/// because it hangs: mpirun may then wait for ever, for a host that does not answer or for itself. Starts a child
/// process for this, which ends with the launcher.
void end_launcher_within(int seconds) noexcept;

}  // namespace ronda
