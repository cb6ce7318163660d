#include <ronda/core/floats.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/served_rows.hpp>

#include <algorithm>
#include <cstdint>

namespace ronda {

TableRows::TableRows(const ReplicaPlan& plan) {
  for (const GradientSlot& table : plan.tables())
    tables_.push_back(
        {table.offset / sizeof(float), static_cast<std::size_t>(plan.requests[index_of(table.id)].desc.shape[1])});
}

/// Empty where the row is another server's.
Range TableRows::place_of(std::size_t table, std::int32_t row, Range share) const noexcept {
  const auto& [first, width] = tables_[table];
  const std::size_t begin = std::max(first + static_cast<std::size_t>(row) * width, share.begin);
  const std::size_t end = std::min(first + (static_cast<std::size_t>(row) + 1) * width, share.end);
  return begin < end ? Range{begin, end} : Range{};
}

RowPacket TableRows::pack(Replica& replica, Range share, const float* arena) const {
  std::vector<std::int64_t> counts(tables_.size());
  std::vector<std::int32_t> rows;
  std::vector<float> values;
  for (std::size_t table = 0; table < tables_.size(); ++table)
    for (const std::int32_t row : replica.touched(table).rows()) {
      const Range place = place_of(table, row, share);
      if (place.size() == 0) continue;
      ++counts[table];
      rows.push_back(row);
      values.insert(values.end(), arena + place.begin, arena + place.end);
    }
  RowPacket packet;
  packet.reserve(counts.size() * sizeof(std::int64_t) + (rows.size() + values.size()) * sizeof(float));
  for (const auto bytes :
       {std::as_bytes(std::span(counts)), std::as_bytes(std::span(rows)), std::as_bytes(std::span(values))})
    packet.insert(packet.end(), bytes.begin(), bytes.end());
  return packet;
}

// ---- a step ---------------------------------------------------------------------------------------------------------

ServedRows::ServedRows(const Communicator& communicator, const Roles& roles, std::span<const Range> shares,
                       Replica& replica)
    : communicator_(communicator),
      roles_(roles),
      rank_(communicator.rank()),
      shares_(shares.begin(), shares.end()),
      replica_(replica),
      tables_(replica.plan()) {
  for (int rank = 0; rank < roles_.ranks(); ++rank)
    if (rank != rank_ && (is_server() || roles_.is_server(rank)))
      channels_.try_emplace(rank, communicator, rank, "touched rows");
}

ArenaRange ServedRows::range() const noexcept {
  const std::size_t first = replica_.plan().dense_elements(), begin = std::max(first, share_of(rank_).begin);
  return part_of_arena(replica_.sparse_arena(), {begin - first, std::max(begin, share_of(rank_).end) - first});
}

void ServedRows::push() {
  if (is_server()) return receive_pushes();
  std::vector<RowPacket> packets;
  packets.reserve(static_cast<std::size_t>(roles_.servers()));
  for (int i = 0; i < roles_.servers(); ++i) {
    const int server = roles_.rank_of_server(i);
    packets.push_back(tables_.pack(replica_, share_of(server), gradients()));
    send(packets.back(), server);
    pushed_bytes_ += packets.back().size();
  }
  finish();
}

/// Rows that nobody touches have no gradient: those of the step before are cleared.
void ServedRows::receive_pushes() {
  replica_.clear_sparse_gradients();
  for (int worker = 0; worker < roles_.workers(); ++worker) {
    const RowPacket packet = receive(roles_.rank_of_worker(worker));
    tables_.for_each(packet, share_of(rank_),
                     [&](std::size_t table, std::int32_t row, std::size_t place, std::span<const float> gradient) {
                       replica_.touched(table).add(row);
                       add_floats(gradient.data(), gradients() + place, gradient.size());
                     });
    pushed_bytes_ += packet.size();
  }
}

/// Lists are made anew, in the order of servers on all ranks, so that a norm of all rows has the same bits.
void ServedRows::tell_sums() {
  RowPacket mine;
  if (is_server()) {
    mine = tables_.pack(replica_, share_of(rank_), gradients());
    for (int rank = 0; rank < roles_.ranks(); ++rank)
      if (rank != rank_) send(mine, rank);
  }
  replica_.clear_sparse_gradients();
  for (int i = 0; i < roles_.servers(); ++i) {
    const int server = roles_.rank_of_server(i);
    RowPacket theirs;
    if (server != rank_) theirs = receive(server);
    const RowPacket& packet = server == rank_ ? mine : theirs;
    tables_.for_each(packet, share_of(server),
                     [&](std::size_t table, std::int32_t row, std::size_t place, std::span<const float> sum) {
                       replica_.touched(table).add(row);
                       std::ranges::copy(sum, gradients() + place);
                     });
    if (!is_server()) pulled_bytes_ += packet.size();
  }
  finish();
}

void ServedRows::pull() {
  if (is_server()) {
    const RowPacket mine = tables_.pack(replica_, share_of(rank_), values());
    for (int worker = 0; worker < roles_.workers(); ++worker) send(mine, roles_.rank_of_worker(worker));
    pulled_bytes_ += static_cast<std::uint64_t>(roles_.workers()) * mine.size();
    return finish();
  }
  for (int i = 0; i < roles_.servers(); ++i) {
    const int server = roles_.rank_of_server(i);
    const RowPacket packet = receive(server);
    tables_.for_each(packet, share_of(server),
                     [&](std::size_t, std::int32_t, std::size_t place, std::span<const float> row) {
                       std::ranges::copy(row, values() + place);
                     });
    pulled_bytes_ += packet.size();
  }
}

// ---- messages -------------------------------------------------------------------------------------------------------

void ServedRows::send(const RowPacket& packet, int to) { channels_.at(to).send({.bytes = packet.size()}, packet); }

void ServedRows::finish() {
  communicator_.wait_until(
      [&] { return std::ranges::none_of(channels_, [](auto& channel) { return channel.second.sending(); }); });
}

RowPacket ServedRows::receive(int from) {
  RowPacket packet;
  Channel& channel = channels_.at(from);
  channel.listen();
  communicator_.wait_until([&] {
    return channel.receive([&](const MessageHeader& header) {
      packet.resize(static_cast<std::size_t>(header.bytes));
      return std::span(packet);
    }) != nullptr;
  });
  return packet;
}

}  // namespace ronda
