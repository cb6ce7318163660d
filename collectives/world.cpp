#include <ronda/collectives/group/environment.hpp>
#include <ronda/collectives/group/foundation.hpp>
#include <ronda/collectives/group/group.hpp>
#include <ronda/collectives/host/algorithms/tree_merge.hpp>
#include <ronda/collectives/host/engine/backoff.hpp>
#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/launcher.hpp>
#include <ronda/collectives/world.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/core/parallel.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace ronda {
namespace {

constexpr EnumNames<Progress, 3> progress_names{{
    {Progress::automatic, "auto"},
    {Progress::inline_, "inline"},
    {Progress::thread, "thread"},
}};

constexpr std::string_view set_up = "setting up the world";

/// As a launcher would say it.
Launcher ranks_of(const Roster& roster) {
  return {.rank = roster.self, .size = roster.size(), .several_hosts = roster.hosts.names().size() > 1};
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

/// Compares the statuses with which the ranks end: by messages that need no engine, whatever else is in flight.
class Ending {
 public:
  Ending(Fabric& fabric, int status)
      : fabric_(fabric),
        statuses_{status, status},
        merge_(fabric.open(fabric.roster().all(), FabricChannel()), std::as_writable_bytes(std::span(statuses_)),
               merge),
        task_(merge_.run()) {}
  Ending(const Ending&) = delete;

  /// Whether all ranks have the same status. False if some rank does not come within a second: then other ranks may
  /// still access this object, which stays until the process ends.
  [[nodiscard]] bool is_common() {
    const Clock& clock = fabric_.clock();
    const double end = clock.now() + 1;
    for (Backoff backoff(true, clock); !task_.done(); backoff.pause()) {
      if (clock.now() > end) return false;
      const auto turn = fabric_.turn().take_within(std::chrono::milliseconds(100));
      if (turn.owns_lock()) task_.advance();
    }
    task_.result();
    return statuses_[0] == statuses_[1];
  }

 private:
  using Statuses = std::array<int, 2>;  ///< the least and the greatest
  static void merge(std::span<std::byte> mine, std::span<const std::byte> other) {
    Statuses merged{}, added{};
    std::memcpy(&merged, mine.data(), sizeof merged);
    std::memcpy(&added, other.data(), sizeof added);
    merged = {std::min(merged[0], added[0]), std::max(merged[1], added[1])};
    std::memcpy(mine.data(), &merged, sizeof merged);
  }

  Fabric& fabric_;
  Statuses statuses_;
  TreeMerge merge_;
  Task task_;
};

}  // namespace

void require_sense(const WorldOptions& options) {
  if (!(options.communication_timeout >= 0))
    throw InputError("a communication_timeout is 0 or more seconds, not " +
                     std::to_string(options.communication_timeout));
}

Progress parse_progress(std::string_view name) { return parse_name(progress_names, name, "a way to progress"); }

std::string_view name_of(Progress progress) noexcept { return find_name(progress_names, progress); }

struct World::Impl {
  Impl(Foundation foundation, const WorldOptions& options);
  ~Impl();

  Watched watched;                       ///< first, so that it sees the end of all else
  std::shared_ptr<const void> lifetime;  ///< outlives what uses the fabric; null: the caller's
  std::shared_ptr<Fabric> fabric;
  std::shared_ptr<Engine> engine;
  std::optional<Communicator> communicator;
  std::unique_ptr<Ending> ending;  ///< null until all_fail
  int cores = 1;
  CoreShare share;
  int exceptions_before = std::uncaught_exceptions();
};

World::Impl::Impl(Foundation foundation, const WorldOptions& options)
    : watched(std::move(foundation.watched)),
      lifetime(std::move(foundation.lifetime)),
      fabric(std::move(foundation.fabric)),
      engine(std::make_shared<Engine>(fabric, watched.recorder, watched.watchdog)) {
  std::optional<RecordedCall> call(std::in_place, watched.ledger, set_up);
  Assembly all(engine, fabric->roster().all(), FabricChannel());
  all.at(set_up);
  Assembly host = all.of(fabric->roster().beside_self());
  share = share_cores(all, host);
  GroupLimits limits = limits_from(options, all);
  limits.channels = std::make_shared<FabricChannels>();
  limits.world_size = all.size();
  limits.oversubscribed = share.least < 1 || !all.all(!limits.oversubscribed);
  limits.any_thread = all.all(fabric->takes_any_thread(options.any_thread));
  const bool may_have_thread = all.all(fabric->takes_any_thread(false));
  const int nodes = Placement::of(fabric->roster(), *all.ranks(), limits.ranks_per_node).topology.nodes;
  const Progress progress = choose_progress(options.progress, may_have_thread, all, nodes, share);
  engine->settle(progress, limits.oversubscribed);
  watched.introduce(all, host);
  auto group = std::make_shared<Communicator::Group>(all, limits, watched.ledger);
  call.reset();
  communicator.emplace(std::move(group));
  const double left = progress == Progress::thread ? share.mine - 1 : share.mine;
  cores = std::max(1, static_cast<int>(left + 1e-6));
  agree(*communicator, [&] {
    if (watched.error) std::rethrow_exception(watched.error);
  });
  if (!watched.note.empty()) communicator->group().members().add_note(watched.note);
}

World::Impl::~Impl() {
  if (std::uncaught_exceptions() <= exceptions_before) {
    engine->stop();
    if (lifetime != nullptr) communicator->group().members().ledger().begin({Kind::mpi, "MPI_Finalize"});
    return;
  }
  if (watched.recorder != nullptr) watched.recorder->keep();
  if (watched.thread != nullptr) watched.thread->stop();
  // The engine's thread may stand still in a call that waits for ranks that no longer come: it keeps what it uses.
  engine->leave_behind();
  new std::shared_ptr<Engine>(engine);
}

World::World(std::unique_ptr<Fabric> fabric, const WorldOptions& options)
    : World(Foundation{Watched::begin(ranks_of(fabric->roster()), options, name_apart(), fabric->clock()), nullptr,
                       std::move(fabric)},
            options) {}

World::World(Foundation foundation, const WorldOptions& options)
    : impl_(std::make_unique<Impl>(std::move(foundation), options)) {}
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
  const auto& thread = impl_->watched.thread;
  return thread == nullptr ? std::string() : thread->divergence();
}

bool World::may_speak() const {
  const auto& watchdog = impl_->watched.watchdog;
  return watchdog == nullptr || watchdog->may_speak();
}

bool World::all_fail(int status) noexcept {
  try {
    impl_->ending = std::make_unique<Ending>(*impl_->fabric, status);
    return impl_->ending->is_common();
  } catch (...) {  // the fabric can no longer be called
    return false;
  }
}

void World::abort(int status) noexcept {
  impl_->fabric->abort(status);
  std::_Exit(status);
}

}  // namespace ronda
