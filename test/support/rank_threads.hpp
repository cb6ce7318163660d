#pragma once
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <ronda/collectives/algorithm.hpp>
#include <ronda/collectives/transport/transport.hpp>

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

/// Throws what the first rank throws that does. No assertions of Catch's in `body`: they are for one thread.
inline void on_threads(int ranks, const std::function<void(int rank)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace ronda::test
