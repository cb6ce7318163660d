#include <ronda/collectives/host/engine/engine.hpp>
#include <ronda/collectives/host/engine/engine_thread.hpp>

namespace ronda {

EngineThread::EngineThread(Engine& engine, bool oversubscribed)
    : engine_(engine), backoff_(oversubscribed, engine.clock()), thread_([this] { run(); }) {}

void EngineThread::wake() noexcept {
  { const std::lock_guard door(door_); }  // so that the thread either sees the work or sleeps
  wake_.notify_one();
}

void EngineThread::stop() noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard door(door_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EngineThread::leave_behind() noexcept {
  if (thread_.joinable()) thread_.detach();
}

void EngineThread::run() {
  while (sleep_until_work())
    if (engine_.step())
      backoff_.reset();
    else
      backoff_.pause();
}

bool EngineThread::sleep_until_work() {
  std::unique_lock door(door_);
  wake_.wait(door, [&] { return stopping_ || engine_.has_work(); });
  return !stopping_;
}

}  // namespace ronda
