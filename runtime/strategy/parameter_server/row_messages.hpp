#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Rows of the sparse tables of a model, and what one server has of their elements. A server's share of the arena may
/// cut a row: then it has a part of that.
struct RowPacket {
  std::vector<std::int64_t> counts = {};  ///< rows, by table
  std::vector<std::int32_t> rows = {};    ///< of the tables, one after the other
  std::vector<float> values = {};         ///< of each row what the server has of it

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return counts.size() * sizeof(std::int64_t) + rows.size() * sizeof(std::int32_t) + values.size() * sizeof(float);
  }
};

/// Puts rows of a replica's tables into packets, and finds their places in an arena.
class TableRows {
 public:
  /// @param plan  of a replica; has tables
  explicit TableRows(const ReplicaPlan& plan);
  [[nodiscard]] std::size_t tables() const noexcept { return tables_.size(); }

  /// The rows that this step has touched, as far as they lie in `share`, with their elements of `arena`.
  [[nodiscard]] RowPacket pack(Replica& replica, Range share, const float* arena) const;

  /// body(table, row, first element of the arena, values), for each row of a packet about `share`.
  template <class Body>
  void for_each(const RowPacket& packet, Range share, const Body& body) const {
    std::size_t next = 0, value = 0;
    for (std::size_t table = 0; table < tables_.size(); ++table)
      for (std::int64_t i = 0; i < packet.counts[table]; ++i) {
        const std::int32_t row = packet.rows[next++];
        const Range place = place_of(table, row, share);
        body(table, row, place.begin, std::span(packet.values).subspan(value, place.size()));
        value += place.size();
      }
  }
  /// Numbers that come with these rows.
  [[nodiscard]] std::size_t values_of(const RowPacket& packet, Range share) const;

 private:
  struct Table {
    std::size_t first = 0, width = 0;  ///< elements of the arena
  };
  [[nodiscard]] Range place_of(std::size_t table, std::int32_t row, Range share) const noexcept;

  std::vector<Table> tables_;
};

/// Sends and receives packets. How long they are is known by the step only, so that each is planned when it goes.
class RowMessages {
 public:
  explicit RowMessages(Communicator communicator) : communicator_(std::move(communicator)) {}

  /// The packet is not to change until `finish`.
  void send(RowPacket& packet, int to, const std::string& label, Stream& stream);
  /// All that was sent has gone.
  void finish(Stream& stream);
  [[nodiscard]] RowPacket receive(const TableRows& tables, Range share, int from, const std::string& label,
                                  Stream& stream);

 private:
  struct Sent {
    std::unique_ptr<Collective> collective;
    Event done;
  };
  template <class T>
  void send_numbers(std::vector<T>& numbers, int to, const std::string& label, Stream& stream);
  template <class T>
  void receive_numbers(std::vector<T>& numbers, int from, const std::string& label, Stream& stream);

  Communicator communicator_;
  std::deque<Sent> sent_;
};

}  // namespace ronda
