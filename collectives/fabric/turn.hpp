#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace ronda {

/// The turn to call a fabric, where only one thread at a time may. It guards the queues of the engine too.
class Turn {
 public:
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] Lock take() {
    const Wish wish(wishes_);
    return Lock(mutex_);
  }
  /// Owns nothing if the turn is not free within `patience`: another thread hangs inside the fabric. (No timed mutex:
  /// ThreadSanitizer of g++ 12 does not see that it is locked.)
  [[nodiscard]] Lock take_within(std::chrono::milliseconds patience) {
    const Wish wish(wishes_);
    const auto end = std::chrono::steady_clock::now() + patience;
    Lock lock(mutex_, std::try_to_lock);
    while (!lock.owns_lock() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      static_cast<void>(lock.try_lock());
    }
    return lock;
  }
  /// For a thread that takes the turn repeatedly: other waiting threads get it first.
  [[nodiscard]] Lock take_last() {
    while (wishes_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
    return Lock(mutex_);
  }

  /// Whether there is another user; a user alone need not take the turn.
  [[nodiscard]] bool shared() const noexcept { return users_.load(std::memory_order_relaxed) > 1; }

  /// A user of the turn, for as long as this object exists.
  class User {
   public:
    explicit User(Turn& turn) noexcept : turn_(turn) { turn_.users_.fetch_add(1); }
    User(const User&) = delete;
    ~User() { turn_.users_.fetch_sub(1); }

   private:
    Turn& turn_;
  };

 private:
  class Wish {
   public:
    explicit Wish(std::atomic<int>& wishes) noexcept : wishes_(wishes) { wishes_.fetch_add(1); }
    Wish(const Wish&) = delete;
    ~Wish() { wishes_.fetch_sub(1); }

   private:
    std::atomic<int>& wishes_;
  };

  std::mutex mutex_;
  std::atomic<int> wishes_{0}, users_{0};
};

}  // namespace ronda
