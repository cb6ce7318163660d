#include <ronda/core/floats.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/served_rows.hpp>

#include <algorithm>

namespace ronda {
namespace {

constexpr const char* touched_rows_label = "touched rows";
constexpr const char* row_sums_label = "the sums of touched rows";
constexpr const char* new_rows_label = "new rows";

}  // namespace

ServedRows::ServedRows(const Communicator& communicator, const Roles& roles, std::span<const Range> shares,
                       Replica& replica)
    : roles_(roles),
      rank_(communicator.rank()),
      shares_(shares.begin(), shares.end()),
      replica_(replica),
      tables_(replica.plan()),
      messages_(communicator) {}

ArenaRange ServedRows::range() const noexcept {
  const std::size_t first = replica_.plan().dense_elements(), begin = std::max(first, share_of(rank_).begin);
  return part_of_arena(replica_.sparse_arena(), {begin - first, std::max(begin, share_of(rank_).end) - first});
}

void ServedRows::push(Stream& stream) {
  if (is_server()) return receive_pushes(stream);
  std::vector<RowPacket> packets;
  packets.reserve(static_cast<std::size_t>(roles_.servers()));
  for (int i = 0; i < roles_.servers(); ++i) {
    const int server = roles_.rank_of_server(i);
    packets.push_back(tables_.pack(replica_, share_of(server), gradients()));
    messages_.send(packets.back(), server, touched_rows_label, stream);
    pushed_bytes_ += packets.back().bytes();
  }
  messages_.finish(stream);
}

/// Rows that nobody touches have no gradient: those of the step before are cleared.
void ServedRows::receive_pushes(Stream& stream) {
  replica_.clear_sparse_gradients();
  for (int worker = 0; worker < roles_.workers(); ++worker) {
    const RowPacket packet =
        messages_.receive(tables_, share_of(rank_), roles_.rank_of_worker(worker), touched_rows_label, stream);
    tables_.for_each(packet, share_of(rank_),
                     [&](std::size_t table, std::int32_t row, std::size_t place, std::span<const float> gradient) {
                       replica_.touched(table).add(row);
                       add_floats(gradient.data(), gradients() + place, gradient.size());
                     });
    pushed_bytes_ += packet.bytes();
  }
}

/// Lists are made anew, in the order of servers on all ranks, so that a norm of all rows has the same bits.
void ServedRows::tell_sums(Stream& stream) {
  RowPacket mine;
  if (is_server()) {
    mine = tables_.pack(replica_, share_of(rank_), gradients());
    for (int rank = 0; rank < roles_.ranks(); ++rank)
      if (rank != rank_) messages_.send(mine, rank, row_sums_label, stream);
  }
  replica_.clear_sparse_gradients();
  for (int i = 0; i < roles_.servers(); ++i) {
    const int server = roles_.rank_of_server(i);
    RowPacket theirs;
    if (server != rank_) theirs = messages_.receive(tables_, share_of(server), server, row_sums_label, stream);
    const RowPacket& packet = server == rank_ ? mine : theirs;
    tables_.for_each(packet, share_of(server),
                     [&](std::size_t table, std::int32_t row, std::size_t place, std::span<const float> sum) {
                       replica_.touched(table).add(row);
                       std::ranges::copy(sum, gradients() + place);
                     });
    if (!is_server()) pulled_bytes_ += packet.bytes();
  }
  messages_.finish(stream);
}

void ServedRows::pull(Stream& stream) {
  if (is_server()) {
    RowPacket mine = tables_.pack(replica_, share_of(rank_), values());
    for (int worker = 0; worker < roles_.workers(); ++worker)
      messages_.send(mine, roles_.rank_of_worker(worker), new_rows_label, stream);
    pulled_bytes_ += static_cast<std::uint64_t>(roles_.workers()) * mine.bytes();
    return messages_.finish(stream);
  }
  for (int i = 0; i < roles_.servers(); ++i) {
    const int server = roles_.rank_of_server(i);
    const RowPacket packet = messages_.receive(tables_, share_of(server), server, new_rows_label, stream);
    tables_.for_each(packet, share_of(server),
                     [&](std::size_t, std::int32_t, std::size_t place, std::span<const float> row) {
                       std::ranges::copy(row, values() + place);
                     });
    pulled_bytes_ += packet.bytes();
  }
}

}  // namespace ronda
