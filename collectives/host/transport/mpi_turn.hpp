#pragma once
#include <atomic>
#include <chrono>
#include <mutex>

namespace ronda {

/// The turn to call MPI, of which a process has one, as it has one MPI: where that was initialised with
/// MPI_THREAD_SERIALIZED, two threads must not be inside it at a time, whatever worlds they work for.
class MpiTurn {
 public:
  using Lock = std::unique_lock<std::timed_mutex>;

  [[nodiscard]] static MpiTurn& of_process() noexcept;

  [[nodiscard]] Lock take() {
    const Wish wish(wishes_);
    return Lock(mutex_);
  }
  /// Owns nothing where it was waited for in vain: somebody stands still inside MPI.
  [[nodiscard]] Lock take_within(std::chrono::milliseconds patience) {
    const Wish wish(wishes_);
    return {mutex_, patience};
  }
  /// For a thread that takes it again and again: who else wants it goes first.
  [[nodiscard]] Lock take_last();

  /// Who takes turns with nobody need not ask.
  [[nodiscard]] bool shared() const noexcept { return users_.load(std::memory_order_relaxed) > 1; }

  /// One who takes turns, as long as this object lives.
  class User {
   public:
    User() noexcept { of_process().users_.fetch_add(1); }
    User(const User&) = delete;
    ~User() { of_process().users_.fetch_sub(1); }
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

  std::timed_mutex mutex_;
  std::atomic<int> wishes_{0}, users_{0};
};

}  // namespace ronda
