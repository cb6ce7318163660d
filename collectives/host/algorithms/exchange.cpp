#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>

namespace ronda {

Exchange::Exchange(std::unique_ptr<Transport> transport, std::span<const Message> outgoing,
                   std::span<const Message> incoming, std::size_t piece_bytes)
    : transport_(std::move(transport)) {
  cut(incoming, false, piece_bytes);
  cut(outgoing, true, piece_bytes);
  std::ranges::stable_sort(pieces_, {}, [](const Piece& piece) { return std::tuple(piece.step, piece.index); });
  requests_.resize(pieces_.size());
  if (own_outgoing_.size() != own_incoming_.size())
    throw LogicError("a rank sends itself " + std::to_string(own_outgoing_.size()) + " bytes and expects " +
                     std::to_string(own_incoming_.size()));
}

void Exchange::cut(std::span<const Message> messages, bool outgoing, std::size_t piece_bytes) {
  const int ranks = transport_->size(), rank = transport_->rank();
  for (const auto& [peer, bytes] : messages) {
    if (peer == rank) {
      (outgoing ? own_outgoing_ : own_incoming_) = bytes;
      continue;
    }
    const int step = (outgoing ? peer - rank + ranks : rank - peer + ranks) % ranks;
    for (std::size_t at = 0, index = 0; at < bytes.size(); at += piece_bytes, ++index)
      pieces_.push_back({step, index, outgoing, {peer, bytes.subspan(at, std::min(piece_bytes, bytes.size() - at))}});
  }
}

Task Exchange::run() {
  if (!own_incoming_.empty()) std::memmove(own_incoming_.data(), own_outgoing_.data(), own_incoming_.size());
  for (std::size_t i = 0; i < std::min(under_way, pieces_.size()); ++i) start(i);
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    Request& oldest = requests_[i];
    co_await oldest;
    if (i + under_way < pieces_.size()) start(i + under_way);
  }
}

void Exchange::start(std::size_t index) {
  const Piece& piece = pieces_[index];
  requests_[index] = piece.outgoing ? transport_->send(piece.message.peer, piece.message.bytes)
                                    : transport_->receive(piece.message.peer, piece.message.bytes);
}

std::vector<std::span<std::byte>> parts_of(std::span<std::byte> all, std::span<const std::size_t> counts,
                                           std::size_t element_bytes) {
  std::vector<std::span<std::byte>> parts;
  std::size_t at = 0;
  for (const std::size_t count : counts) {
    parts.push_back(all.subspan(at, count * element_bytes));
    at += count * element_bytes;
  }
  return parts;
}

std::vector<Exchange::Message> messages_of(std::span<const std::span<std::byte>> parts) {
  std::vector<Exchange::Message> messages;
  for (int peer = 0; peer < static_cast<int>(parts.size()); ++peer)
    messages.push_back({peer, parts[static_cast<std::size_t>(peer)]});
  return messages;
}

}  // namespace ronda
