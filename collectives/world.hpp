#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/core_share.hpp>
#include <ronda/collectives/stall.hpp>

namespace ronda {

class Fabric;

/// The thread that drives communication.
/// - `inline_`: the computing thread, which polls between layers and while waiting. Requests MPI_THREAD_FUNNELED.
/// - `thread`: a dedicated thread. Requests MPI_THREAD_SERIALIZED.
/// - `automatic`: `thread` if the ranks are on several hosts and every rank has a core to spare, otherwise `inline_`.
enum class Progress : std::uint8_t { automatic, inline_, thread };
/// Parses auto, inline or thread. Throws InputError, which lists these names.
[[nodiscard]] Progress parse_progress(std::string_view name);
[[nodiscard]] std::string_view name_of(Progress progress) noexcept;

struct WorldOptions {
  Progress progress = Progress::automatic;
  /// Requests MPI_THREAD_SERIALIZED also with inline progress: threads other than the one that made the World may
  /// communicate, one at a time. A Coordinator needs this. If the caller has initialised MPI (`adopt`) with only
  /// MPI_THREAD_SERIALIZED, the caller must make no MPI calls elsewhere meanwhile.
  bool any_thread = false;
  /// Seconds that a rank may wait for others without any progress, in a collective or inside MPI. Then `on_stall` is
  /// called on every rank, and waits in collectives fail with an error that names the collective and the late ranks;
  /// waits inside MPI cannot be interrupted. 0: no limit.
  double communication_timeout = 60;
  /// For testing several nodes on one host: treats each `ranks_per_node` ranks of a host as a node. 0: one node per
  /// host. Default: the environment variable RONDA_RANKS_PER_NODE.
  std::optional<int> ranks_per_node = {};
  /// For tests, and to leave shared memory to other programs: treats /dev/shm as if it had at most this many bytes
  /// free. Default: the environment variable RONDA_SHARED_MEMORY_LIMIT.
  std::optional<std::size_t> shared_memory_limit = {};
  /// Folder for the records of each rank's last collectives, which are kept for `ronda_trace`. Default: the environment
  /// variable RONDA_TRACE_DIR. Without either, a job of several ranks writes its records to a folder in /dev/shm, and
  /// keeps them only if it fails.
  std::filesystem::path trace = {};
  /// Called on the watchdog's thread when the job makes no progress for longer than the timeout. Must not call MPI,
  /// which may be blocked in another thread, and must not throw. `launch` sets a function that prints the message and
  /// ends the process.
  std::function<void(const Stall&)> on_stall = {};
};

/// All ranks of the job and the fabric that connects them, usually MPI. One object per process, created before
/// everything else of Ronda and destroyed after it.
class World {
 public:
  /// Initialises MPI; the destructor finalizes it, except during stack unwinding: finalizing would then wait for ranks
  /// that have failed. Throws CommunicationError. Throws InputError, agreed, if MPI has fewer ranks than the launcher
  /// started, or has one rank although the environment announces more processes (WORLD_SIZE, TF_CONFIG, …) and
  /// RONDA_ALONE=1 is not set.
  World(int& argc, char**& argv, const WorldOptions& options = {});

  /// For a program that initialises MPI itself (and finalizes it after this object is destroyed). `communicator` is an
  /// MPI_Comm; it is duplicated. Collective over it. Defined in <ronda/collectives/mpi_world.hpp>, so that only callers
  /// that use MPI themselves need its header.
  template <class MpiCommunicator>
  static World adopt(MpiCommunicator communicator, const WorldOptions& options = {});

  /// Uses a fabric other than MPI.
  explicit World(std::unique_ptr<Fabric> fabric, const WorldOptions& options = {});

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  [[nodiscard]] const Communicator& communicator() const noexcept;
  [[nodiscard]] int rank() const noexcept { return communicator().rank(); }
  [[nodiscard]] int size() const noexcept { return communicator().size(); }
  /// The mode in use; never `automatic`.
  [[nodiscard]] Progress progress() const noexcept;
  /// Cores that this rank may use for computing: the whole cores of its share, less one if a thread drives
  /// communication; at least 1.
  [[nodiscard]] int cores() const noexcept;
  /// Default number of this rank's computing threads: OMP_NUM_THREADS, or one per core, limited to those that OpenMP
  /// grants (see count_threads).
  [[nodiscard]] int threads() const;
  /// This rank's share of the node's cores, by CPU affinity and quotas.
  [[nodiscard]] const CoreShare& core_share() const noexcept;

  /// Folder of this rank's record; empty if there is no record.
  [[nodiscard]] std::filesystem::path record_folder() const;
  /// Ranks of other hosts that the watchdog's datagrams do not reach: they cannot report when a job stalls. Known only
  /// on the first two ranks of a host, some seconds after the start. Not collective.
  [[nodiscard]] std::vector<int> out_of_reach() const;

  /// Description of the first difference between the ranks' records; empty if none is visible from this rank. Not
  /// collective; the other ranks may be anywhere in the program.
  [[nodiscard]] std::string divergence() const;

  /// For `launch`: whether this rank may print the reason why all ranks end; false if another rank has already claimed
  /// it. Not collective.
  [[nodiscard]] bool may_speak() const;

  /// For `launch`: whether all ranks fail with this status. Waits one second for the other ranks to call it.
  [[nodiscard]] bool all_fail(int status) noexcept;
  /// Ends all ranks at once, without waiting for any. For `launch`, after a failure unknown to the other ranks.
  [[noreturn]] void abort(int status) noexcept;

 private:
  struct Foundation;
  struct Impl;
  [[nodiscard]] static Foundation over_mpi(int& argc, char**& argv, const WorldOptions& options);
  World(Foundation foundation, const WorldOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
