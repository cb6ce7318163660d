#include <ronda/runtime/strategy/parameter_server/row_messages.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

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
  RowPacket packet{.counts = std::vector<std::int64_t>(tables_.size())};
  for (std::size_t table = 0; table < tables_.size(); ++table)
    for (const std::int32_t row : replica.touched(table).rows()) {
      const Range place = place_of(table, row, share);
      if (place.size() == 0) continue;
      ++packet.counts[table];
      packet.rows.push_back(row);
      packet.values.insert(packet.values.end(), arena + place.begin, arena + place.end);
    }
  return packet;
}

std::size_t TableRows::values_of(const RowPacket& packet, Range share) const {
  std::size_t next = 0, values = 0;
  for (std::size_t table = 0; table < tables_.size(); ++table)
    for (std::int64_t i = 0; i < packet.counts[table]; ++i)
      values += place_of(table, packet.rows[next++], share).size();
  return values;
}

// ---- messages -------------------------------------------------------------------------------------------------------

template <class T>
void RowMessages::send_numbers(std::vector<T>& numbers, int to, const std::string& label, Stream& stream) {
  if (numbers.empty()) return;
  sent_.push_back({communicator_.plan(SendSpec{Tensor(std::span(numbers)), to, label}), {}});
  sent_.back().done = sent_.back().collective->start(stream.record());
}

void RowMessages::send(RowPacket& packet, int to, const std::string& label, Stream& stream) {
  send_numbers(packet.counts, to, label, stream);
  send_numbers(packet.rows, to, label, stream);
  send_numbers(packet.values, to, label, stream);
}

void RowMessages::finish(Stream& stream) {
  for (const Sent& sent : sent_) stream.wait(sent.done);
  sent_.clear();
}

template <class T>
void RowMessages::receive_numbers(std::vector<T>& numbers, int from, const std::string& label, Stream& stream) {
  if (numbers.empty()) return;
  const auto receive = communicator_.plan(ReceiveSpec{Tensor(std::span(numbers)), from, label});
  stream.wait(receive->start(stream.record()));
}

RowPacket RowMessages::receive(const TableRows& tables, Range share, int from, const std::string& label,
                               Stream& stream) {
  RowPacket packet{.counts = std::vector<std::int64_t>(tables.tables())};
  receive_numbers(packet.counts, from, label, stream);
  packet.rows.resize(
      static_cast<std::size_t>(std::accumulate(packet.counts.begin(), packet.counts.end(), std::int64_t{0})));
  receive_numbers(packet.rows, from, label, stream);
  packet.values.resize(tables.values_of(packet, share));
  receive_numbers(packet.values, from, label, stream);
  return packet;
}

}  // namespace ronda
