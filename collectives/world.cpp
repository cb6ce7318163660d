#include <ronda/collectives/engine.hpp>
#include <ronda/collectives/group.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/mpi_world.hpp>
#include <ronda/runtime/core/enum_names.hpp>
#include <ronda/runtime/core/error.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
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

/// MPI, from its initialisation to its end.
class MpiLifetime {
 public:
  MpiLifetime(int& argc, char**& argv, int wanted_level) {
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
    if (!unwinding()) MPI_Finalize();
  }
  /// True where this object goes because an exception is under way.
  [[nodiscard]] bool unwinding() const noexcept { return std::uncaught_exceptions() > exceptions_before_; }

 private:
  int exceptions_before_ = std::uncaught_exceptions();
};

int granted_level() {
  int level = MPI_THREAD_SINGLE;
  mpi::check(MPI_Query_thread(&level), "MPI_Query_thread");
  return level;
}

/// Before MPI is there to tell how many hosts there are: the level that the choice to come may need.
int level_to_ask_for(Progress progress) {
  const bool thread =
      progress == Progress::thread || (progress == Progress::automatic && Launcher::from_environment().several_hosts);
  return thread ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
}

/// The same on all ranks.
Progress choose_progress(Progress wanted, const mpi::Communicator& communicator, int nodes, const CoreShare& share) {
  const bool possible = communicator.all(granted_level() >= MPI_THREAD_SERIALIZED);
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
  Impl(std::unique_ptr<MpiLifetime> mpi, MPI_Comm original, const WorldOptions& options);
  ~Impl();

  std::unique_ptr<MpiLifetime> lifetime;  ///< null where MPI is the caller's; first, so that it ends last
  std::shared_ptr<Engine> engine;
  std::optional<Communicator> communicator;
  int cores = 1;
  bool crowded = false;
  int exceptions_before = std::uncaught_exceptions();
};

World::Impl::Impl(std::unique_ptr<MpiLifetime> mpi, MPI_Comm original, const WorldOptions& options)
    : lifetime(std::move(mpi)) {
  auto all = mpi::Communicator::duplicate(original);
  const CoreShare share = share_cores(all);
  GroupLimits limits;
  limits.world_size = all.size();
  limits.mpi_operations = std::make_shared<const MpiOperations>();
  limits.oversubscribed = share.least < 1;
  limits.ranks_per_node = options.ranks_per_node.value_or(from_environment("RONDA_RANKS_PER_NODE", 0));
  limits.shared_memory =
      options.shared_memory_limit.value_or(from_environment("RONDA_SHARED_MEMORY_LIMIT", limits.shared_memory));

  const int nodes = Placement::of(all, limits.ranks_per_node).topology.nodes;
  const Progress progress = choose_progress(options.progress, all, nodes, share);
  engine = std::make_shared<Engine>(progress, limits.oversubscribed, options.communication_timeout);
  communicator.emplace(std::make_shared<Communicator::Group>(engine, std::move(all), limits));
  const double left = progress == Progress::thread ? share.mine - 1 : share.mine;
  crowded = share.crowded;
  cores = std::max(1, static_cast<int>(left + 1e-6));
}

World::Impl::~Impl() {
  if (engine == nullptr) return;
  if (std::uncaught_exceptions() <= exceptions_before) {
    engine->stop();
    return;
  }
  // The engine's thread may stand still in a call that waits for ranks that no longer come: it keeps what it uses.
  engine->leave_behind();
  new std::shared_ptr<Engine>(engine);
}

World::World(int& argc, char**& argv, WorldOptions options)
    : impl_(std::make_unique<Impl>(std::make_unique<MpiLifetime>(argc, argv, level_to_ask_for(options.progress)),
                                   MPI_COMM_WORLD, options)) {}

template <>
World World::adopt<MPI_Comm>(MPI_Comm communicator, WorldOptions options) {
  return World(std::make_unique<Impl>(nullptr, communicator, options));
}

World::World(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
World::World(World&&) noexcept = default;
World& World::operator=(World&&) noexcept = default;
World::~World() = default;

const Communicator& World::communicator() const noexcept { return *impl_->communicator; }
Progress World::progress() const noexcept { return impl_->engine->progress(); }
int World::cores() const noexcept { return impl_->cores; }
bool World::crowded() const noexcept { return impl_->crowded; }

void World::abort(int status) noexcept {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace ronda
