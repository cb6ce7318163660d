#include <ronda/collectives/engine.hpp>
#include <ronda/collectives/group.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/collectives/watch/watchdog.hpp>
#include <ronda/runtime/core/enum_names.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <map>
#include <random>
#include <span>
#include <utility>

namespace ronda {
namespace {

constexpr EnumNames<Progress, 3> progress_names{{
    {Progress::automatic, "auto"},
    {Progress::inline_, "inline"},
    {Progress::thread, "thread"},
}};

template <class Number>
Number from_environment(const char* name, Number otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (*end != '\0' || value < 0 || !std::in_range<Number>(value))
    throw InputError(std::string(name) + " is '" + text + "'; expected a number, 0 or more");
  return static_cast<Number>(value);
}

std::string library_name() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  mpi::check(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  std::string name = text.data();
  name.resize(std::min(name.size(), name.find_first_of(",\n")));
  std::replace(name.begin(), name.end(), '\t', ' ');
  return name;
}

/// Started by another MPI's launcher, every rank would be a world of its own, and train alone.
void require_launchers_ranks() {
  const Launcher launcher = Launcher::from_environment();
  int size = 0;
  mpi::check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (launcher.size_variable == nullptr || size >= launcher.size) return;
  const std::string variable = launcher.size_variable;
  InputError error("expected " + std::to_string(launcher.size) + " ranks (" + variable + "), found " +
                   std::to_string(size) + ": the launcher does not reach the MPI that this program was built with, " +
                   library_name() +
                   "; take the mpirun of that MPI, or srun --mpi=pmix (Open MPI), --mpi=pmi2 (MPICH); " +
                   "for a run alone, unset " + variable);
  error.set_agreed();
  throw error;
}

/// This rank's record, and who watches it; both null for a rank alone.
struct Watched {
  std::shared_ptr<Recorder> recorder;
  std::shared_ptr<Watchdog> watchdog;
  Ledger ledger{};             ///< of all ranks
  std::exception_ptr error{};  ///< why there is no record where one was asked for
  std::string note{};          ///< why there is none otherwise

  [[nodiscard]] static Watched begin(const Launcher& launcher, const WorldOptions& options);
};

std::filesystem::path wanted_folder(const WorldOptions& options) {
  const char* variable = std::getenv("RONDA_TRACE_DIR");
  return options.trace.empty() && variable != nullptr ? variable : options.trace;
}

Watched Watched::begin(const Launcher& launcher, const WorldOptions& options) {
  Watched watched;
  const std::filesystem::path wanted = wanted_folder(options);
  if (wanted.empty() && (launcher.size == 1 || options.communication_timeout == 0)) return watched;
  watched.note = "no place for records";
  for (const auto& folder : wanted.empty() ? default_record_folders() : std::vector{wanted}) {
    try {
      if (wanted.empty()) remove_old_records(folder);
      watched.recorder = std::make_shared<Recorder>(folder, !wanted.empty(), launcher.rank, launcher.size);
      break;
    } catch (const Error& error) {
      if (!wanted.empty()) watched.error = std::current_exception();
      watched.note = error.what();
    }
  }
  if (watched.recorder == nullptr) {
    watched.note += "; a rank that does not come will not be noticed";
    return watched;
  }
  watched.note.clear();
  watched.ledger.recorder = watched.recorder;
  if (launcher.size > 1 && options.communication_timeout > 0)
    watched.watchdog = std::make_shared<Watchdog>(
        watched.recorder, Watchdog::Options{options.communication_timeout, !launcher.several_hosts, options.on_stall});
  return watched;
}

/// A number that the ranks share, and nobody else has.
std::uint64_t agree_on_token(const mpi::Communicator& all) {
  std::random_device random;
  std::uint64_t token = (std::uint64_t{random()} << 32 | random()) | 1;
  all.broadcast(std::as_writable_bytes(std::span(&token, 1)), 0);
  return token;
}

/// The watchdogs of all ranks get to know each other.
void introduce(const Watched& watched, const mpi::Communicator& all, const std::vector<std::string>& hosts) {
  const std::uint64_t token = agree_on_token(all);
  const std::vector<int> here = all.split_by_node().allgather(all.rank());
  std::unique_ptr<SideChannel> channel;
  std::string address;
  try {
    if (here.size() < hosts.size()) channel = std::make_unique<SideChannel>();
    if (channel != nullptr) address = channel->address();
  } catch (const ResourceError&) {  // then its silence tells
  }
  const auto addresses = all.allgather_texts(address);
  const auto lowest = all.allgather(here.front());
  if (channel != nullptr) {
    std::vector<SideChannel::Peer> peers;
    std::map<int, int> ranks_of_host;  // by its lowest rank; the first two may have to tell what happened
    for (int rank = 0; rank < all.size(); ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const bool may_tell = ranks_of_host[lowest[index]]++ < 2;
      if (lowest[index] != here.front()) peers.push_back({rank, addresses[index], may_tell});
    }
    channel->meet(all.rank(), token, peers);
  }
  all.barrier();
  if (watched.recorder != nullptr) watched.recorder->met(all.rank(), all.size(), token);
  if (watched.watchdog != nullptr) watched.watchdog->meet(hosts, here, std::move(channel));
}

/// MPI, from its initialisation to its end.
class MpiLifetime {
 public:
  MpiLifetime(int& argc, char**& argv, int wanted_level, Watched& watched) : recorder_(watched.recorder) {
    const RecordedCall call(watched.ledger, "MPI_Init");
    const InsideMpi inside(recorder_.get());
    int initialized = 0;
    mpi::check(MPI_Initialized(&initialized), "MPI_Initialized");
    if (initialized != 0) throw LogicError("MPI is initialised already; use World::adopt");
    int level = MPI_THREAD_SINGLE;
    mpi::check(MPI_Init_thread(&argc, &argv, wanted_level, &level), "MPI_Init_thread");
    mpi::check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    require_launchers_ranks();
  }
  MpiLifetime(const MpiLifetime&) = delete;
  ~MpiLifetime() {
    if (unwinding()) return;
    const InsideMpi inside(recorder_.get());
    MPI_Finalize();
    if (recorder_ != nullptr) recorder_->end_last();
  }
  /// True where this object goes because an exception is under way.
  [[nodiscard]] bool unwinding() const noexcept { return std::uncaught_exceptions() > exceptions_before_; }

 private:
  std::shared_ptr<Recorder> recorder_;
  int exceptions_before_ = std::uncaught_exceptions();
};

int granted_level() {
  int level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  return level;
}

/// The same on all ranks.
bool any_thread_may_call(const mpi::Communicator& communicator) {
  return communicator.all(granted_level() >= MPI_THREAD_SERIALIZED);
}

/// Before MPI is there to tell how many hosts there are: the level that the choice to come may need.
int level_to_ask_for(const WorldOptions& options) {
  const bool thread = options.any_thread || options.progress == Progress::thread ||
                      (options.progress == Progress::automatic && Launcher::from_environment().several_hosts);
  return thread ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
}

/// The same on all ranks.
Progress choose_progress(Progress wanted, const mpi::Communicator& communicator, int nodes, const CoreShare& share) {
  const bool possible = any_thread_may_call(communicator);
  if (wanted == Progress::thread && !possible)
    throw InputError("progress by a thread needs an MPI that is initialised with MPI_THREAD_SERIALIZED; take inline");
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

  Watched watched;                        ///< first, so that it sees the end of all else
  std::unique_ptr<MpiLifetime> lifetime;  ///< null where MPI is the caller's; outlives what uses MPI
  std::shared_ptr<Engine> engine;
  std::optional<Communicator> communicator;
  int cores = 1;
  bool crowded = false;
  int exceptions_before = std::uncaught_exceptions();
};

World::Impl::Impl(Watched watching, std::unique_ptr<MpiLifetime> mpi, MPI_Comm original, const WorldOptions& options)
    : watched(std::move(watching)), lifetime(std::move(mpi)) {
  std::optional<RecordedCall> call(std::in_place, watched.ledger, "meeting the other ranks");
  std::optional<InsideMpi> inside(std::in_place, watched.recorder.get());
  auto all = mpi::Communicator::duplicate(original);
  const CoreShare share = share_cores(all);
  GroupLimits limits;
  limits.world_size = all.size();
  limits.mpi_operations = std::make_shared<const MpiOperations>();
  limits.oversubscribed = share.least < 1;
  limits.any_thread = any_thread_may_call(all);
  limits.ranks_per_node = options.ranks_per_node.value_or(from_environment("RONDA_RANKS_PER_NODE", 0));
  limits.shared_memory =
      options.shared_memory_limit.value_or(from_environment("RONDA_SHARED_MEMORY_LIMIT", limits.shared_memory));

  const Topology topology = Placement::of(all, limits.ranks_per_node).topology;
  const int nodes = topology.nodes;
  const Progress progress = choose_progress(options.progress, all, nodes, share);
  engine = std::make_shared<Engine>(progress, limits.oversubscribed, watched.recorder, watched.watchdog);
  introduce(watched, all, topology.hosts);
  auto group = std::make_shared<Communicator::Group>(engine, std::move(all), limits, watched.ledger);
  inside.reset();
  call.reset();
  communicator.emplace(std::move(group));
  const double left = progress == Progress::thread ? share.mine - 1 : share.mine;
  crowded = share.crowded;
  cores = std::max(1, static_cast<int>(left + 1e-6));
  agree(*communicator, [&] {
    if (watched.error) std::rethrow_exception(watched.error);
  });
  if (!watched.note.empty()) communicator->group().add_note(watched.note);
}

World::Impl::~Impl() {
  if (engine == nullptr) return;
  if (std::uncaught_exceptions() <= exceptions_before) {
    engine->stop();
    if (lifetime != nullptr) communicator->group().ledger().begin({Kind::mpi, "MPI_Finalize"});
    return;
  }
  if (watched.recorder != nullptr) watched.recorder->keep();
  if (watched.watchdog != nullptr) watched.watchdog->stop();
  // The engine's thread may stand still in a call that waits for ranks that no longer come: it keeps what it uses.
  engine->leave_behind();
  new std::shared_ptr<Engine>(engine);
}

World::World(int& argc, char**& argv, const WorldOptions& options) {
  Watched watched = Watched::begin(Launcher::from_environment(), options);
  auto lifetime = std::make_unique<MpiLifetime>(argc, argv, level_to_ask_for(options), watched);
  impl_ = std::make_unique<Impl>(std::move(watched), std::move(lifetime), MPI_COMM_WORLD, options);
}

template <>
World World::adopt<MPI_Comm>(MPI_Comm communicator, const WorldOptions& options) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) throw LogicError("World::adopt is for programs that have initialised MPI");
  if (communicator == MPI_COMM_NULL) throw InputError("MPI_COMM_NULL has no ranks to adopt; give a communicator");
  Launcher ranks = Launcher::from_environment();
  mpi::check(MPI_Comm_rank(communicator, &ranks.rank), "MPI_Comm_rank");
  mpi::check(MPI_Comm_size(communicator, &ranks.size), "MPI_Comm_size");
  return World(std::make_unique<Impl>(Watched::begin(ranks, options), nullptr, communicator, options));
}

World::World(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

const Communicator& World::communicator() const noexcept { return *impl_->communicator; }
Progress World::progress() const noexcept { return impl_->engine->progress(); }
int World::cores() const noexcept { return impl_->cores; }
bool World::crowded() const noexcept { return impl_->crowded; }

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

void World::abort(int status) noexcept {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace ronda
