#include <ronda/collectives/group/environment.hpp>
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/group/watched.hpp>
#include <ronda/collectives/host/algorithms/allreduce/mpi.hpp>
#include <ronda/collectives/host/engine/backoff.hpp>
#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/host/transport/mpi_lifetime.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/enum_names.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <random>
#include <utility>

namespace ronda {
namespace {

constexpr EnumNames<Progress, 3> progress_names{{
    {Progress::automatic, "auto"},
    {Progress::inline_, "inline"},
    {Progress::thread, "thread"},
}};

/// The smallest, or the largest, number of all ranks. Waits without keeping other threads of this process, which may
/// have to do something for these ranks first, from calling MPI.
std::uint64_t reduced(std::uint64_t mine, MPI_Op op, MPI_Comm communicator) {
  std::uint64_t result = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto turn = MpiTurn::of_process().take();
    mpi::check(MPI_Iallreduce(&mine, &result, 1, MPI_UINT64_T, op, communicator, &request), "MPI_Iallreduce");
  }
  Backoff backoff(true);
  for (int done = 0; done == 0; backoff.pause()) {
    const auto turn = MpiTurn::of_process().take();
    mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
  }
  return result;
}

/// Waits until all ranks have come, and draws the world's priority: the same on all ranks, another one for each world.
std::uint64_t meet(MPI_Comm communicator) {
  std::random_device random;
  return reduced(std::uint64_t{random()} << 32 | random(), MPI_MAX, communicator);
}

/// What the environment says, with the ranks that MPI has: where nobody has told of any, or they are others.
Launcher ranks_of(MPI_Comm communicator) {
  Launcher ranks = Launcher::from_environment();
  mpi::check(MPI_Comm_rank(communicator, &ranks.rank), "MPI_Comm_rank");
  mpi::check(MPI_Comm_size(communicator, &ranks.size), "MPI_Comm_size");
  ranks.several_hosts = ranks.size > 1 && (ranks.several_hosts || !ranks.known);
  return ranks;
}

/// @param agreed  the first rank throws it too, and speaks for all
[[noreturn]] void refuse(const std::string& text, bool agreed = true) {
  InputError error(text);
  if (agreed) error.set_agreed();
  throw error;
}

/// Throws where MPI has fewer ranks than its launcher started, or one rank alone where the environment announces more
/// processes: every process would then be a world of its own, and train alone.
/// @param launcher, announced  before MPI was initialised: it sets variables of its launcher for a process alone, too
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

/// A program may hand over several communicators, whose ranks have the same numbers.
std::string name_of_adopted() { return std::to_string(::getpid()) + "-" + std::to_string(std::random_device()()); }

/// Asked in a way that does not end the process.
bool is_communicator(MPI_Comm communicator) {
  if (communicator == MPI_COMM_NULL) return false;
  MPI_Errhandler usual = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &usual);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // of handles that MPI does not know
  int ranks = 0;
  int between_groups = 0;
  const bool known = MPI_Comm_size(communicator, &ranks) == MPI_SUCCESS &&
                     MPI_Comm_test_inter(communicator, &between_groups) == MPI_SUCCESS && between_groups == 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, usual);
  MPI_Errhandler_free(&usual);
  return known;
}

/// Before MPI is there to tell how many hosts there are: the level that the choice to come may need.
int level_to_ask_for(const WorldOptions& options) {
  const bool thread = options.any_thread || options.progress == Progress::thread ||
                      (options.progress == Progress::automatic && Launcher::from_environment().several_hosts);
  return thread ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED;  // the watchdog's thread is there, and calls no MPI
}

void require_sense(const WorldOptions& options) {
  if (!(options.communication_timeout >= 0))
    throw InputError("a communication_timeout is 0 or more seconds, not " +
                     std::to_string(options.communication_timeout));
}

/// All ranks throw if a variable is wrong on any rank, or if the ranks would divide hosts differently.
GroupLimits limits_from(const WorldOptions& options, Assembly& all) {
  GroupLimits limits;
  std::string why;
  try {
    limits.ranks_per_node = options.ranks_per_node.value_or(from_environment("RONDA_RANKS_PER_NODE", 0));
    limits.shared_memory =
        options.shared_memory_limit.value_or(from_environment("RONDA_SHARED_MEMORY_LIMIT", limits.shared_memory));
    limits.oversubscribed = from_environment("RONDA_SHARED_CORES", 0) > 0 && all.size() > 1;
  } catch (const InputError& error) {
    why = error.what();
  }
  const auto complaints = all.gather_texts(why);
  for (std::size_t rank = 0; rank < complaints.size(); ++rank) {
    if (complaints[rank].empty()) continue;
    const bool alike = std::ranges::all_of(complaints, [&](const auto& other) { return other == complaints[rank]; });
    throw as_agreed(InputError((alike ? "" : "rank " + std::to_string(rank) + ": ") + complaints[rank]));
  }
  const auto ranks_per_node = all.gather(limits.ranks_per_node);
  for (std::size_t rank = 0; rank < ranks_per_node.size(); ++rank)
    if (ranks_per_node[rank] != ranks_per_node[0])
      throw as_agreed(InputError("ranks_per_node (RONDA_RANKS_PER_NODE) is " + std::to_string(ranks_per_node[0]) +
                                 " on rank 0 and " + std::to_string(ranks_per_node[rank]) + " on rank " +
                                 std::to_string(rank) + "; give all ranks the same, 0 for none"));
  return limits;
}

/// Where any rank asks for what cannot be, all throw.
/// @param possible  any thread may call MPI, on all ranks
Progress choose_progress(Progress wanted, bool possible, Assembly& all, int nodes, const CoreShare& share) {
  const bool all_can_do_without = all.all(wanted != Progress::thread);
  if (!possible && !all_can_do_without) {
    InputError error(
        "progress by a thread needs an MPI that is initialised with MPI_THREAD_SERIALIZED, or with MPI_THREAD_MULTIPLE "
        "where the program calls MPI itself (World::adopt); take inline");
    error.set_agreed();
    throw error;
  }
  if (wanted != Progress::automatic) return wanted;
  const bool core_is_free = share.least >= 2;
  return possible && nodes > 1 && core_is_free ? Progress::thread : Progress::inline_;
}

}  // namespace

Progress parse_progress(std::string_view name) { return parse_name(progress_names, name, "a way to progress"); }

std::string_view name_of(Progress progress) noexcept { return find_name(progress_names, progress); }

struct World::Impl {
  Impl(Watched watching, std::unique_ptr<MpiLifetime> mpi, MPI_Comm original, const WorldOptions& options);
  ~Impl();
  [[nodiscard]] GroupLimits meet_in_mpi(MPI_Comm original);

  Watched watched;                        ///< first, so that it sees the end of all else
  std::unique_ptr<MpiLifetime> lifetime;  ///< null where MPI is the caller's; outlives what uses MPI
  std::shared_ptr<MpiFabric> fabric;
  std::shared_ptr<Engine> engine;
  std::optional<Communicator> communicator;
  mpi::Communicator ending;  ///< for all_fail, whatever else is in flight
  int cores = 1;
  CoreShare share;
  int exceptions_before = std::uncaught_exceptions();
};

World::Impl::Impl(Watched watching, std::unique_ptr<MpiLifetime> mpi, MPI_Comm original, const WorldOptions& options)
    : watched(std::move(watching)), lifetime(std::move(mpi)) {
  std::optional<RecordedCall> call(std::in_place, watched.ledger, "meeting the other ranks");
  GroupLimits met = meet_in_mpi(original);
  engine = std::make_shared<Engine>(watched.recorder, watched.watchdog);
  Assembly all(engine, fabric, fabric->roster().all(), FabricChannel());
  all.at("meeting the other ranks");
  Assembly host = all.of(fabric->roster().beside_self());
  share = share_cores(all, host);
  GroupLimits limits = limits_from(options, all);
  limits.mpi_operations = std::move(met.mpi_operations);
  limits.priority = met.priority;
  limits.channels = std::make_shared<FabricChannels>();
  limits.world_size = all.size();
  limits.oversubscribed = share.least < 1 || !all.all(!limits.oversubscribed);
  limits.any_thread = all.all(any_thread_may_call(lifetime != nullptr || options.any_thread));
  const bool may_have_thread = all.all(any_thread_may_call(lifetime != nullptr));
  const int nodes = Placement::of(fabric->roster(), *all.ranks(), limits.ranks_per_node).topology.nodes;
  const Progress progress = choose_progress(options.progress, may_have_thread, all, nodes, share);
  engine->settle(progress, limits.oversubscribed);
  watched.introduce(all, host);
  auto group = std::make_shared<Communicator::Group>(all, fabric, limits, watched.ledger);
  call.reset();
  communicator.emplace(std::move(group));
  const double left = progress == Progress::thread ? share.mine - 1 : share.mine;
  cores = std::max(1, static_cast<int>(left + 1e-6));
  agree(*communicator, [&] {
    if (watched.error) std::rethrow_exception(watched.error);
  });
  if (!watched.note.empty()) communicator->group().members().add_note(watched.note);
}

/// MPI waits here for the other ranks.
GroupLimits World::Impl::meet_in_mpi(MPI_Comm original) {
  const InsideMpi inside(watched.recorder.get());
  GroupLimits met;
  met.priority = meet(original);
  const auto reservation = MpiTurn::of_process().reserve(
      met.priority, [&](bool mine) { return reduced(mine ? 1 : 0, MPI_MIN, original) == 1; });
  const auto turn = MpiTurn::of_process().take_to_wait();
  fabric = std::make_shared<MpiFabric>(original);
  ending = mpi::Communicator::duplicate(original);
  met.mpi_operations = std::make_shared<const MpiOperations>();
  return met;
}

World::Impl::~Impl() {
  if (engine == nullptr) return;
  if (std::uncaught_exceptions() <= exceptions_before) {
    engine->stop();
    if (!engine->in_turn([&] { ending = mpi::Communicator(); })) ending.leave_behind();
    if (lifetime != nullptr) communicator->group().members().ledger().begin({Kind::mpi, "MPI_Finalize"});
    return;
  }
  if (watched.recorder != nullptr) watched.recorder->keep();
  if (watched.watchdog != nullptr) watched.watchdog->stop();
  // The engine's thread may stand still in a call that waits for ranks that no longer come: it keeps what it uses.
  engine->leave_behind();
  ending.leave_behind();
  new std::shared_ptr<Engine>(engine);
}

World::World(int& argc, char**& argv, const WorldOptions& options) {
  require_sense(options);
  const Launcher launcher = Launcher::from_environment();
  const AnnouncedProcesses announced = AnnouncedProcesses::from_environment();
  Watched watched;
  if (launcher.known) watched = Watched::begin(launcher, options);
  auto lifetime = std::make_unique<MpiLifetime>(argc, argv, level_to_ask_for(options), watched.ledger);
  require_announced_ranks(launcher, announced);
  if (!launcher.known) {  // MPI alone knows how many ranks there are
    watched = Watched::begin(ranks_of(MPI_COMM_WORLD), options);
    lifetime->record_end(watched.recorder);
  }
  impl_ = std::make_unique<Impl>(std::move(watched), std::move(lifetime), MPI_COMM_WORLD, options);
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
  return World(
      std::make_unique<Impl>(Watched::begin(ranks, options, name_of_adopted()), nullptr, communicator, options));
}

World::World(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

const Communicator& World::communicator() const noexcept { return *impl_->communicator; }
Progress World::progress() const noexcept { return impl_->engine->progress(); }
int World::cores() const noexcept { return impl_->cores; }
int World::threads() const { return count_threads(0, cores()).count; }
const CoreShare& World::core_share() const noexcept { return impl_->share; }

std::filesystem::path World::record_folder() const {
  const auto& recorder = impl_->watched.recorder;
  return recorder == nullptr ? std::filesystem::path() : recorder->folder();
}

std::vector<int> World::out_of_reach() const {
  const auto& watchdog = impl_->watched.watchdog;
  return watchdog == nullptr ? std::vector<int>() : watchdog->unheard();
}

std::string World::divergence() const {
  const auto& watchdog = impl_->watched.watchdog;
  return watchdog == nullptr ? std::string() : watchdog->divergence();
}

bool World::may_speak() const {
  const auto& watchdog = impl_->watched.watchdog;
  return watchdog == nullptr || watchdog->may_speak();
}

bool World::all_fail(int status) noexcept {
  if (mpi::is_over()) return false;
  const double end = steady_seconds() + 1;
  static std::array<int, 2> mine, largest;  // MPI may still read them when this returns
  mine = {status, -status};
  MPI_Request request = MPI_REQUEST_NULL;
  Backoff backoff(true);
  for (int done = 0, begun = 0; done == 0; backoff.pause()) {
    if (steady_seconds() > end) return false;
    const auto turn = MpiTurn::of_process().take_within(std::chrono::milliseconds(100));
    if (!turn.owns_lock()) continue;
    if (begun++ == 0 && MPI_Iallreduce(mine.data(), largest.data(), static_cast<int>(mine.size()), MPI_INT, MPI_MAX,
                                       impl_->ending.handle(), &request) != MPI_SUCCESS)
      return false;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
  }
  return largest[0] == -largest[1];
}

void World::abort(int status) noexcept {
  if (!mpi::is_over()) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace ronda
