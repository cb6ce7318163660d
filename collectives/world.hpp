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

/// Who moves messages along. `inline_`: the computing thread, which polls between layers and in waits; MPI is asked for
/// MPI_THREAD_FUNNELED. `thread`: a thread of its own; MPI_THREAD_SERIALIZED. `automatic`: a thread where ranks sit on
/// several hosts and a core is free for it, inline otherwise.
enum class Progress : std::uint8_t { automatic, inline_, thread };
/// auto, inline, thread. Throws InputError that lists them.
[[nodiscard]] Progress parse_progress(std::string_view name);
[[nodiscard]] std::string_view name_of(Progress progress) noexcept;

struct WorldOptions {
  Progress progress = Progress::automatic;
  /// Also where progress is inline, MPI is asked for MPI_THREAD_SERIALIZED: other threads than the one that made the
  /// world may communicate, one at a time. A Coordinator needs it. Where MPI is the caller's (`adopt`) and has
  /// MPI_THREAD_SERIALIZED alone, the caller promises to call it nowhere else meanwhile.
  bool any_thread = false;
  /// Seconds that a rank may wait for others while nothing moves, in a collective or inside MPI. Then `on_stall` is
  /// called on every rank, and what waits in a collective fails with an error that names the collective and the late
  /// ranks; what waits inside MPI cannot be interrupted. 0: for ever.
  double communication_timeout = 60;
  /// For tests of several nodes on one: takes every so many ranks of a host for a node. 0: the hosts as they are.
  /// Where it is not set, the environment variable RONDA_RANKS_PER_NODE counts.
  std::optional<int> ranks_per_node = {};
  /// For tests, and to leave shared memory to others: takes /dev/shm for one with at most so many bytes free. Where it
  /// is not set, the environment variable RONDA_SHARED_MEMORY_LIMIT counts.
  std::optional<std::size_t> shared_memory_limit = {};
  /// Where the last collectives of each rank are written down, and kept, for `ronda_trace`: a folder. Where it is not
  /// set, the environment variable RONDA_TRACE_DIR counts; where neither is, the records of a job of several ranks go
  /// to a folder in /dev/shm, and are kept only where it ends badly.
  std::filesystem::path trace = {};
  /// Called on the watchdog's thread when the job makes no progress for longer than the timeout. Must not call MPI,
  /// which may be waiting in another thread, and must not throw; `launch` gives one that prints and ends the process.
  std::function<void(const Stall&)> on_stall = {};
};

/// All ranks of the job, and what connects them, MPI in most jobs. One object a process, made before everything else
/// and destroyed after it.
class World {
 public:
  /// Initialises MPI; the destructor finalizes it (unless it runs because of an exception: then MPI is left as it is,
  /// because finalizing would wait for ranks that no longer come). Throws CommunicationError. Throws InputError,
  /// agreed, if MPI has fewer ranks than the launcher started, or has one rank although the environment announces more
  /// processes (WORLD_SIZE, TF_CONFIG, …) and RONDA_ALONE=1 is not set.
  World(int& argc, char**& argv, const WorldOptions& options = {});

  /// For a program that has initialised MPI itself (and finalizes it after this object is gone). `communicator` is an
  /// MPI_Comm; it is duplicated. Collective over it. Defined in <ronda/collectives/mpi_world.hpp>, because only callers
  /// with MPI of their own need its header.
  template <class MpiCommunicator>
  static World adopt(MpiCommunicator communicator, const WorldOptions& options = {});

  /// Over another fabric than MPI.
  explicit World(std::unique_ptr<Fabric> fabric, const WorldOptions& options = {});

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  [[nodiscard]] const Communicator& communicator() const noexcept;
  [[nodiscard]] int rank() const noexcept { return communicator().rank(); }
  [[nodiscard]] int size() const noexcept { return communicator().size(); }
  /// The choice made for `automatic`.
  [[nodiscard]] Progress progress() const noexcept;
  /// Cores that this rank may use for computing: whole ones of its share, less one that a thread moves messages on; 1
  /// at least.
  [[nodiscard]] int cores() const noexcept;
  /// Threads that this rank computes with by default: OMP_NUM_THREADS, or one per core, at most as many as OpenMP
  /// grants (see count_threads).
  [[nodiscard]] int threads() const;
  /// This rank's share of the node's cores, by its binding and by quotas of processor time.
  [[nodiscard]] const CoreShare& core_share() const noexcept;

  /// Where this rank's record is; empty where there is none.
  [[nodiscard]] std::filesystem::path record_folder() const;
  /// Ranks of other hosts that the watchdog's datagrams have not reached: when a job stalls, they cannot report. Known
  /// on the first two ranks of a host, some seconds after the start; not collective.
  [[nodiscard]] std::vector<int> out_of_reach() const;

  /// Where the ranks' records first differ, in words; empty where they do not, as far as can be seen from here. Not
  /// collective; the other ranks may be anywhere.
  [[nodiscard]] std::string divergence() const;

  /// For `launch`: this rank is about to print why all ranks end. False if another rank has printed it. Not collective.
  [[nodiscard]] bool may_speak() const;

  /// For `launch`: whether all ranks fail with this status. Waits a second for the others to call it.
  [[nodiscard]] bool all_fail(int status) noexcept;
  /// Ends all ranks at once, without waiting for any. For `launch`, after a failure that the others do not know of.
  [[noreturn]] void abort(int status) noexcept;

 private:
  struct Foundation;
  struct Impl;
  [[nodiscard]] static Foundation over_mpi(int& argc, char**& argv, const WorldOptions& options);
  World(Foundation foundation, const WorldOptions& options);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ronda
