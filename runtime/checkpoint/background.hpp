#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace ronda {

/// A thread that runs submitted work in order, in parallel with the training. It never calls MPI.
class Background {
 public:
  Background();
  /// Waits for all submitted work.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// `work` must not throw.
  void submit(std::function<void()> work);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace ronda
