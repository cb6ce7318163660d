#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda::test {

/// Hands an end of a network to an algorithm, which owns what it is given.
class BorrowedTransport final : public Transport {
 public:
  explicit BorrowedTransport(Transport& lender) : lender_(lender) {}
  [[nodiscard]] int rank() const noexcept override { return lender_.rank(); }
  [[nodiscard]] int size() const noexcept override { return lender_.size(); }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override { return lender_.send(to, message); }
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override {
    return lender_.receive(from, message);
  }
  [[nodiscard]] Open open() noexcept override { return lender_.open(); }
  void take_back() noexcept override { lender_.take_back(); }

 private:
  bool test(Handle&) override { return true; }  // requests are the lender's
  void abandon(Handle) noexcept override {}

  Transport& lender_;
};

inline void run_to_end(Algorithm& algorithm) {
  Task task = algorithm.run();
  while (!task.done())
    if (!task.advance()) std::this_thread::yield();
  task.result();
}

/// Threads that stay: to make them anew takes longer than most of what they are for, under ThreadSanitizer above all.
class RankThreads {
 public:
  RankThreads() = default;
  RankThreads(const RankThreads&) = delete;
  ~RankThreads() {
    {
      const std::lock_guard lock(door_);
      body_ = nullptr;
      ++round_;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  /// Throws what the first rank throws that does.
  void run(int ranks, const std::function<void(int rank)>& body) {
    std::unique_lock lock(door_);
    errors_.assign(static_cast<std::size_t>(ranks), nullptr);
    body_ = &body;
    ranks_ = working_ = ranks;
    ++round_;
    while (static_cast<int>(threads_.size()) < ranks)
      threads_.emplace_back([this, rank = static_cast<int>(threads_.size()), seen = round_ - 1] { work(rank, seen); });
    changed_.notify_all();
    changed_.wait(lock, [&] { return working_ == 0; });
    for (const auto& error : errors_)
      if (error) std::rethrow_exception(error);
  }

 private:
  void work(int rank, std::uint64_t seen) {
    std::unique_lock lock(door_);
    for (;;) {
      changed_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      if (body_ == nullptr) return;
      if (rank >= ranks_) continue;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*body_)(rank);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      errors_[static_cast<std::size_t>(rank)] = error;
      if (--working_ == 0) changed_.notify_all();
    }
  }

  std::mutex door_;
  std::condition_variable changed_;
  const std::function<void(int)>* body_ = nullptr;  ///< of this round; null: the last one is over
  std::uint64_t round_ = 0;
  int ranks_ = 0, working_ = 0;
  std::vector<std::exception_ptr> errors_;
  std::vector<std::thread> threads_;
};

/// Throws what the first rank throws that does. No assertions of Catch's in `body`: they are for one thread.
inline void on_threads(int ranks, const std::function<void(int rank)>& body) {
  static RankThreads threads;
  threads.run(ranks, body);
}

}  // namespace ronda::test
