#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include <ronda/collectives/host/engine/backoff.hpp>

namespace ronda {

class Engine;

/// Calls an engine's `step` as long as something is in flight, and sleeps otherwise.
class EngineThread {
 public:
  /// @param oversubscribed  ranks share cores: the thread gives its core away early
  EngineThread(Engine& engine, bool oversubscribed);
  EngineThread(const EngineThread&) = delete;
  ~EngineThread() { stop(); }

  /// Something is in flight.
  void wake() noexcept;
  /// Ends the thread. What is in flight is left as it is.
  void stop() noexcept;
  /// Leaves the thread to itself, if it may stand still for ever; this object must not be destroyed then.
  void leave_behind() noexcept;

 private:
  void run();
  /// False if the thread is to end.
  [[nodiscard]] bool sleep_until_work();

  Engine& engine_;
  Backoff backoff_;
  std::mutex door_;
  std::condition_variable wake_;
  bool stopping_ = false;  ///< guarded by `door_`
  std::thread thread_;     ///< last: it uses all of the above
};

}  // namespace ronda
