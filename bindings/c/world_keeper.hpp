#pragma once
#include <ronda/collectives/world.hpp>
#include <ronda/coordinator/coordinator.hpp>

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace ronda {

/// Before a communicator's handle is converted, which ends the process where MPI is not there. Throws LogicError.
void require_mpi();

/// A world and its coordinator on a thread of their own, from MPI's start to its end, which MPI wants of one thread.
/// Starting and ending may stand still inside MPI, for a rank that is stopped or gone; when the watchdog says so, who
/// waits here gets an error, and the thread is left where it is.
class WorldKeeper {
 public:
  /// Makes the world, with these options.
  using Make = std::function<World(const WorldOptions&)>;

  /// Returns when all is open. Throws what `make` or the coordinator throws, CommunicationError where the job stands
  /// still meanwhile.
  WorldKeeper(Make make, const WorldOptions& options, const CoordinatorOptions& coordinator_options);
  WorldKeeper(const WorldKeeper&) = delete;
  /// Without `close` before, the thread is left where it is.
  ~WorldKeeper();

  [[nodiscard]] Coordinator& coordinator() noexcept { return *state_->coordinator; }
  /// Closes the coordinator, then ends the world, unless that failed. Throws as the constructor does.
  void close();

 private:
  enum class Stage { starting, open, closing, over };
  /// What the threads share; the left one keeps it.
  struct State {
    std::mutex door;
    std::condition_variable changed;
    Stage stage = Stage::starting;
    Coordinator* coordinator = nullptr;  ///< while it is open
    std::exception_ptr error;            ///< that it is over with
    bool stands_still = false;
    std::string why;

    void enter(Stage next);
    void stand_still(const Stall& stall);
  };
  static void run(State& state, const Make& make, const WorldOptions& options,
                  const CoordinatorOptions& coordinator_options);
  void wait_for(Stage stage);

  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;
};

}  // namespace ronda
