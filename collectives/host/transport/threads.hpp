#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// Ranks as threads of one process, for tests of algorithms. A message is copied when both sides are there, straight
/// from the sender's memory, as late as that: an algorithm that touches memory too early is seen to do so.
class ThreadNetwork {
 public:
  explicit ThreadNetwork(int ranks);
  ~ThreadNetwork();

  /// Rank `rank`'s end; used by one thread. Lives as long as the network.
  [[nodiscard]] Transport& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

 private:
  class End;
  struct Posted;
  using Handle = std::uint64_t;

  Handle post(bool sending, int from, int to, std::span<std::byte> message);
  bool take_if_done(Handle handle);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Transport>> ends_;
  std::vector<Posted> posted_;  ///< waiting for the other side or for a test, in order of posting
  Handle next_ = 1;
};

}  // namespace ronda
