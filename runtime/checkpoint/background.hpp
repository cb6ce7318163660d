#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ronda {

/// Work that is done in order, beside the training: it never calls MPI. Any thread may submit, one does the work.
class Background {
 public:
  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// `work` must not throw.
  void submit(std::function<void()> work);
  /// Does the next work. False if there is none.
  bool step();

  /// Waits for work. False if there is none, and `close` was called.
  [[nodiscard]] bool wait();
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closed_ = false;
};

/// Does the work of a Background on a thread that takes no signals.
class BackgroundThread {
 public:
  explicit BackgroundThread(Background& work);
  /// Waits for all submitted work.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

 private:
  Background& work_;
  std::thread thread_;
};

}  // namespace ronda
