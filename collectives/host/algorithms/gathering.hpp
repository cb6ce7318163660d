#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// What each rank has, as many bytes as every rank knows, goes to all ranks: for setting up. With no bytes at all it is
/// a barrier.
///
/// In step k a rank receives from the one 2^k above it the blocks that this one has by then, and sends its own to the
/// one 2^k below. Five ranks; the blocks of rank 0 after each step:
///
///     0    01    0123    01234
///
/// Cost: log2(n) latencies, rounded up, and everything once over each link (Bruck et al., "Efficient algorithms for
/// all-to-all communications in multiport message-passing systems", IEEE TPDS 1997).
class Gathering final : public Algorithm {
 public:
  /// @param place  what it is for, in the same words on all ranks: it goes with every message, and ranks that are at
  ///               different places of the program get an error
  /// @param mine   copied
  /// @param bytes  by rank
  Gathering(std::unique_ptr<Transport> transport, std::uint64_t place, std::span<const std::byte> mine,
            std::vector<std::size_t> bytes);

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

  /// After a run: everybody's bytes, by rank. @param all  as many as there are
  void copy_to(std::span<std::byte> all) const noexcept;

 private:
  [[nodiscard]] std::size_t rank_at(std::size_t position) const noexcept;

  std::unique_ptr<Transport> transport_;
  std::uint64_t place_;
  std::vector<std::size_t> bytes_;  ///< by rank
  std::vector<std::size_t> ends_;   ///< of the blocks, this rank's first
  std::vector<std::byte> blocks_, outbox_, inbox_;
  Request incoming_, outgoing_;
};

}  // namespace ronda
