#pragma once
#include <memory>
#include <vector>

#include <ronda/collectives/fabric/fabric.hpp>

namespace ronda {

/// Ranks as threads of one process. A message is copied when both sides have posted it, straight from the sender's
/// memory, as late as that: an algorithm that touches memory too early is seen to do so.
class ThreadNetwork {
 public:
  explicit ThreadNetwork(int ranks);
  ~ThreadNetwork();

  /// Opens a transport of rank `self`: see Fabric::open. One thread at a time uses it; the network outlives it.
  [[nodiscard]] std::unique_ptr<FabricTransport> open(int self, Ranks ranks, FabricChannel channel);
  /// Rank `rank`'s transport between all ranks, on channel 0. Lives as long as the network.
  [[nodiscard]] Transport& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

 private:
  class End;
  struct Posted;
  struct Mailbox;

  void post(Posted& mine);
  /// The other side no longer finds it.
  void withdraw(Posted& mine) noexcept;

  std::vector<Mailbox> mailboxes_;  ///< by receiving rank
  std::vector<std::unique_ptr<Transport>> ends_;
};

}  // namespace ronda
