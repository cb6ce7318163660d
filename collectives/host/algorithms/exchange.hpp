#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/transport/transport.hpp>

namespace ronda {

/// Messages straight from rank to rank: what a gather, a scatter, an alltoall, and a send and its receive have in
/// common.
///
/// Each rank is told what it sends to whom and what it receives from whom. Ranks meet in pairs: first everybody sends
/// to rank+1 and receives from rank-1, then to rank+2 and from rank-2, and so on, so that no rank is everybody's first.
/// Long messages go in pieces, and some pieces are under way at a time, each rank's earliest ones: of all that are
/// left, the earliest is under way on both its ends, so that something always moves. What a rank sends to itself is
/// copied.
///
/// Cost: a latency for each message, and each byte once over the link of its sender and that of its receiver.
class Exchange final : public Algorithm {
 public:
  /// To a rank, or from it; memory that outlives the exchange. Both ends know the length; nothing is sent for 0.
  struct Message {
    int peer = 0;
    std::span<std::byte> bytes;
  };

  /// @param outgoing, incoming  at most one each way with a rank
  /// @param piece_bytes  the longest message; the same on both ends
  Exchange(std::unique_ptr<Transport> transport, std::span<const Message> outgoing, std::span<const Message> incoming,
           std::size_t piece_bytes = short_message_bytes);

  /// Both ways.
  [[nodiscard]] std::size_t pieces() const noexcept { return pieces_.size(); }
  /// Of all ranks that a message comes from or goes to.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

 private:
  static constexpr std::size_t under_way = 32;  ///< half of them each way, mostly

  struct Piece {
    int step;           ///< in which the two ranks meet
    std::size_t index;  ///< of the message's pieces
    bool outgoing;
    Message message;
  };
  void cut(std::span<const Message> messages, bool outgoing, std::size_t piece_bytes);
  void start(std::size_t index);

  std::unique_ptr<Transport> transport_;
  std::span<std::byte> own_outgoing_, own_incoming_;
  std::vector<Piece> pieces_;  ///< the earliest first
  std::vector<Request> requests_;
};

/// One after the other in `all`, each as many elements long as its count says.
[[nodiscard]] std::vector<std::span<std::byte>> parts_of(std::span<std::byte> all, std::span<const std::size_t> counts,
                                                         std::size_t element_bytes);

/// A message for each rank's part.
[[nodiscard]] std::vector<Exchange::Message> messages_of(std::span<const std::span<std::byte>> parts);

}  // namespace ronda
