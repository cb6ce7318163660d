#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/stream.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/parameter_server/row_messages.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

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
  void push(Stream& stream);
  /// All ranks have all sums.
  void tell_sums(Stream& stream);
  /// A worker's rows have the new values.
  void pull(Stream& stream);

  /// Of a server: its share of the tables, of which the touched rows are to be updated.
  [[nodiscard]] ArenaRange range() const noexcept;
  [[nodiscard]] std::uint64_t pushed_bytes() const noexcept { return pushed_bytes_; }  ///< so far
  [[nodiscard]] std::uint64_t pulled_bytes() const noexcept { return pulled_bytes_; }

 private:
  void receive_pushes(Stream& stream);
  [[nodiscard]] bool is_server() const noexcept { return roles_.is_server(rank_); }
  [[nodiscard]] const Range& share_of(int rank) const { return shares_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] float* values() const noexcept { return reinterpret_cast<float*>(replica_.values().data()); }
  [[nodiscard]] float* gradients() const noexcept { return reinterpret_cast<float*>(replica_.gradients().data()); }

  Roles roles_;
  int rank_;
  std::vector<Range> shares_;  ///< by rank
  Replica& replica_;
  TableRows tables_;
  RowMessages messages_;
  std::uint64_t pushed_bytes_ = 0, pulled_bytes_ = 0;
};

}  // namespace ronda
