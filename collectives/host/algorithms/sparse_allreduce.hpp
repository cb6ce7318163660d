#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// Sums a table over all ranks, in place, of which each rank has touched some rows: only these travel.
///
/// Row r belongs to rank r mod n, its *owner*. Each rank sends each owner the rows it has touched; the owner adds them,
/// and sends the sums to all. Three ranks, tables of six rows, of which rank 1 owns rows 1 and 4; a dot is an untouched
/// row:
///
///     rank 0   a0  b0  .   .   .   .  ──┐  b0           ┌── B  E
///     rank 1   .   .   .   .   e1  .    ├─ B = b0 + b2 ─┤   B  E
///     rank 2   .   b2  .   d2  .   .  ──┘  E = e1       └── B  E
///
/// How many rows a message has is known to its sender alone: ahead of either half each rank tells each other one, in a
/// message of fixed length. Rows travel behind their numbers, in pieces; as in an Exchange, ranks meet in pairs, and
/// each rank's earliest pieces are under way.
///
/// Afterwards all ranks have the same bits, and the same list: the rows of owner 0, of owner 1, …
///
/// Cost: 4 latencies, and with u rows touched by any rank at most about 2 (n-1)/n · u rows a rank, where owners have as
/// many; whatever the table has. The two halves are the split allgather of Renggli et al., "SparCML: high-performance
/// sparse communication for machine learning", SC 2019, without its change to whole vectors.
/// Order of summation: the owner's part, then those of the ranks below it, downwards and around.
class SparseAllreduce final : public Algorithm {
 public:
  /// @param table    rows of `width` elements, as many as `touched` has room for; it and `touched` outlive this object
  /// @param piece_bytes  of a message at most, but for one of a single row; the same on every rank
  SparseAllreduce(std::unique_ptr<Transport> transport, float* table, std::size_t width, TouchedRows& touched,
                  std::size_t piece_bytes = short_message_bytes);

  /// Collective over the transport's ranks.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& look) override { look(*transport_); }
  [[nodiscard]] std::size_t memory() const noexcept override;
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept override { return sent_; }

 private:
  static constexpr std::size_t under_way = 16;  ///< pieces, half of them each way, mostly

  enum class Half : std::uint8_t { sum, hand_out };
  /// Neighbours of `rows_`, or, on their way in, of their sender's.
  struct Piece {
    int step;           ///< in which the two ranks meet
    std::size_t index;  ///< of the pieces between them
    bool outgoing;
    int peer;
    std::size_t first, count;
  };

  void sort_by_owner();
  void tell_counts(Half half);
  void line_up_owners();
  void cut(Half half);
  void add_pieces(int step, bool outgoing, int peer, std::size_t first, std::size_t count);
  void start(std::size_t index);
  void pack(const Piece& piece, std::byte* slot) const;
  void add(const Piece& piece, const std::byte* slot);
  void store(const Piece& piece, const std::byte* slot);

  [[nodiscard]] std::size_t ranks() const noexcept { return incoming_counts_.size(); }
  [[nodiscard]] std::size_t me() const noexcept { return static_cast<std::size_t>(transport_->rank()); }
  [[nodiscard]] std::size_t owner_of(std::int32_t row) const noexcept {
    return static_cast<std::size_t>(row) % ranks();
  }
  [[nodiscard]] int above(int step) const noexcept { return (transport_->rank() + step) % transport_->size(); }
  [[nodiscard]] int below(int step) const noexcept { return above(transport_->size() - step); }
  [[nodiscard]] float* values_of(std::int32_t row) const noexcept {
    return table_ + static_cast<std::size_t>(row) * width_;
  }
  [[nodiscard]] std::byte* slot_of(std::size_t piece) const noexcept {
    return slots_.data() + piece % under_way * slot_bytes();
  }
  [[nodiscard]] std::size_t bytes_of(std::size_t rows) const noexcept {
    return rows * (sizeof(std::int32_t) + width_ * sizeof(float));
  }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return bytes_of(rows_a_piece_); }

  std::unique_ptr<Transport> transport_;
  float* table_;
  std::size_t width_;
  TouchedRows& touched_;
  std::size_t rows_a_piece_;
  std::vector<std::int32_t> rows_;   ///< by owner: those that this rank has touched, then those that any rank has
  std::vector<std::size_t> begins_;  ///< of each owner's in `rows_`, and the end
  std::vector<std::int32_t> mine_;   ///< that this rank owns and any has touched
  std::vector<std::uint32_t> outgoing_counts_, incoming_counts_;  ///< by rank
  std::vector<Request> counts_;
  std::vector<Piece> pieces_;  ///< the earliest first
  std::vector<Request> requests_;
  Buffer slots_;
  std::uint64_t sent_ = 0;
};

}  // namespace ronda
