#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/key_value/detail/channel.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Rows of sparse tables as they travel: the number of rows of each table (int64), the rows' numbers (int32), then of
/// each row the elements that one server has (float32). A server's share of the arena may cut a row.
using RowPacket = std::vector<std::byte>;

/// Puts rows of a replica's tables into packets, and finds their places in an arena.
class TableRows {
 public:
  /// @param plan  of a replica; has tables
  explicit TableRows(const ReplicaPlan& plan);

  /// The rows that this step has touched, as far as they lie in `share`, with their elements of `arena`.
  [[nodiscard]] RowPacket pack(Replica& replica, Range share, const float* arena) const;

  /// body(table, row, first element of the arena, values), for each row of a packet about `share`.
  template <class Body>
  void for_each(const RowPacket& packet, Range share, const Body& body) const {
    const auto* const counts = reinterpret_cast<const std::int64_t*>(packet.data());
    std::int64_t left = 0;
    for (std::size_t table = 0; table < tables_.size(); ++table) left += counts[table];
    const auto* row = reinterpret_cast<const std::int32_t*>(counts + tables_.size());
    const auto* value = reinterpret_cast<const float*>(row + left);
    for (std::size_t table = 0; table < tables_.size(); ++table)
      for (std::int64_t i = 0; i < counts[table]; ++i, ++row) {
        const Range place = place_of(table, *row, share);
        body(table, *row, place.begin, std::span(value, place.size()));
        value += place.size();
      }
  }

 private:
  struct Table {
    std::size_t first = 0, width = 0;  ///< elements of the arena
  };
  [[nodiscard]] Range place_of(std::size_t table, std::int32_t row, Range share) const noexcept;

  std::vector<Table> tables_;
};

/// The tables with sparse gradients of a model that is trained by servers: in a step each worker pushes the rows that
/// it has touched, each to the server that has it, and pulls those that any worker has touched, with their new values.
/// Two workers, one of them reads tokens 3 and 7, the other one 7 and 9:
///
///     worker 0    touches 3 7     push 3 7                            pull 3 7 9
///     worker 1    touches 7 9     push 7 9                            pull 3 7 9
///     server 2                    3, 7 + 7, 9 -> optimizer -> 3 7 9
///
/// Rows are summed in the order of the workers' ranks.
class ServedRows {
 public:
  /// Not collective.
  /// @param shares   of the arena's elements, by rank
  /// @param replica  has its arenas, and tables; outlives this object
  ServedRows(const Communicator& communicator, const Roles& roles, std::span<const Range> shares, Replica& replica);

  // Each on all ranks, in this order.

  /// A worker's rows go to the servers; a server's become the sums of all workers'.
  void push();
  /// All ranks have all sums.
  void tell_sums();
  /// A worker's rows have the new values.
  void pull();

  /// Of a server: its share of the tables, of which the touched rows are to be updated.
  [[nodiscard]] ArenaRange range() const noexcept;
  [[nodiscard]] std::uint64_t pushed_bytes() const noexcept { return pushed_bytes_; }  ///< so far
  [[nodiscard]] std::uint64_t pulled_bytes() const noexcept { return pulled_bytes_; }

 private:
  void receive_pushes();
  /// `packet` must not change until `finish`.
  void send(const RowPacket& packet, int to);
  void finish();
  [[nodiscard]] RowPacket receive(int from);
  [[nodiscard]] bool is_server() const noexcept { return roles_.is_server(rank_); }
  [[nodiscard]] const Range& share_of(int rank) const { return shares_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] float* values() const noexcept { return reinterpret_cast<float*>(replica_.values().data()); }
  [[nodiscard]] float* gradients() const noexcept { return reinterpret_cast<float*>(replica_.gradients().data()); }

  Communicator communicator_;
  Roles roles_;
  int rank_;
  std::vector<Range> shares_;  ///< by rank
  Replica& replica_;
  TableRows tables_;
  std::map<int, Channel> channels_;  ///< by rank: between servers and all others
  std::uint64_t pushed_bytes_ = 0, pulled_bytes_ = 0;
};

}  // namespace ronda
