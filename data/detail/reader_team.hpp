#pragma once
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <ronda/core/function_ref.hpp>

namespace ronda {

/// Threads that share out the samples of a batch: the caller and `readers - 1` of the team's own.
class ReaderTeam {
 public:
  explicit ReaderTeam(std::size_t readers);
  ~ReaderTeam();
  ReaderTeam(const ReaderTeam&) = delete;
  ReaderTeam& operator=(const ReaderTeam&) = delete;

  [[nodiscard]] std::size_t readers() const noexcept { return threads_.size() + 1; }
  /// Calls work(reader, i) once for each i below `count`, from `readers` threads; returns when all are done. Where some
  /// throw, what that of the smallest i threw is thrown here. One caller at a time.
  void run(std::size_t count, FunctionRef<void(std::size_t reader, std::size_t i)> work);

 private:
  void serve(std::size_t reader);
  void take_part(std::size_t reader, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;  ///< guards all below
  std::condition_variable changed_;
  const FunctionRef<void(std::size_t, std::size_t)>* work_ = nullptr;
  std::size_t next_ = 0, count_ = 0, at_work_ = 0;
  std::size_t failed_ = 0;  ///< the smallest i that threw `failure_`
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ronda
