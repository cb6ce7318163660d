#include <mpi.h>

#include <ronda/bindings/c/world_keeper.hpp>

#include <ronda/core/error.hpp>

#include <chrono>
#include <utility>

namespace ronda {
namespace {

/// What fails by itself, once the job stands still, is given so long to say why.
constexpr std::chrono::seconds grace{5};

}  // namespace

void require_mpi() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized == 0 || finalized != 0)
    throw LogicError(finalized != 0 ? "MPI is finalized already"
                                    : "MPI is not initialised; ronda_init or ronda_kv_open does that");
}

WorldKeeper::WorldKeeper(Make make, const WorldOptions& options, const CoordinatorOptions& coordinator_options) {
  WorldOptions watched = options;
  watched.on_stall = [state = state_](const Stall& stall) { state->stand_still(stall); };
  thread_ = std::thread([state = state_, make = std::move(make), watched, coordinator_options] {
    run(*state, make, watched, coordinator_options);
    state->enter(Stage::over);
  });
  try {
    wait_for(Stage::open);
  } catch (...) {
    if (thread_.joinable()) thread_.detach();
    throw;
  }
}

WorldKeeper::~WorldKeeper() {
  if (thread_.joinable()) thread_.detach();
}

void WorldKeeper::close() {
  state_->enter(Stage::closing);
  wait_for(Stage::over);
}

/// On the thread. Where anything fails, the world goes while an exception is under way, and so waits for nobody.
void WorldKeeper::run(State& state, const Make& make, const WorldOptions& options,
                      const CoordinatorOptions& coordinator_options) {
  try {
    World world = make(options);
    Coordinator coordinator(world.communicator(), coordinator_options);
    state.coordinator = &coordinator;
    state.enter(Stage::open);
    {
      std::unique_lock door(state.door);
      state.changed.wait(door, [&] { return state.stage == Stage::closing; });
    }
    coordinator.close();
  } catch (...) {
    state.error = std::current_exception();
  }
}

void WorldKeeper::State::enter(Stage next) {
  {
    const std::lock_guard lock(door);
    stage = next;
  }
  changed.notify_all();
}

void WorldKeeper::State::stand_still(const Stall& stall) {
  {
    const std::lock_guard lock(door);
    stands_still = true;
    why = stall.message.empty() ? "the job stands still; another rank says why" : stall.message;
  }
  changed.notify_all();
}

void WorldKeeper::wait_for(Stage stage) {
  std::unique_lock door(state_->door);
  const auto there = [&] { return state_->stage == stage || state_->stage == Stage::over; };
  state_->changed.wait(door, [&] { return there() || state_->stands_still; });
  if (!there() && !state_->changed.wait_for(door, grace, there)) throw CommunicationError(state_->why);
  if (state_->stage != Stage::over) return;
  door.unlock();
  thread_.join();
  if (state_->error) std::rethrow_exception(state_->error);
}

}  // namespace ronda
