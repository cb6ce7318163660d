#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// Which of its halves a ring goes through.
enum class RingPart : std::uint8_t { allreduce, reduce_scatter, allgather };

/// Reduces data over all ranks, in place, by passing pieces around a ring.
///
/// The n ranks sit in a circle; each sends only to its right neighbour and receives only from its left one. The data is
/// cut into n *chunks*. In n-1 steps of reduce-scatter every chunk travels once around and gathers each rank's part;
/// in n-1 steps of allgather the finished chunks travel on. Three ranks, chunks a, b, c; capitals are finished sums:
///
///              start           2 steps of reduce-scatter       2 steps of allgather
///     rank 0   a0  b0  c0      A    .    .                     A  B  C
///     rank 1   a1  b1  c1      .    B    .                     A  B  C
///     rank 2   a2  b2  c2      .    .    C                     A  B  C
///
/// A chunk is sent in *segments*, so that one is summed while the next is on its way. Seen from a rank the whole is one
/// sequence of segments to send and one of segments to receive; as many as are under way at a time are its *lanes*:
/// enough to keep a link busy however long it is, and never more than a chunk has segments, because what a rank passes
/// on in a step it received one step before.
///
/// Either half is a collective of its own: reduce-scatter ends with chunk r finished on rank r, allgather begins with
/// it. Chunks may be of any lengths; unless told otherwise they are as even as can be.
///
/// Cost: 2(n-1) latencies and 2(n-1)/n of the data over each link; no algorithm sends less
/// (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009).
/// Order of summation: chunk c starts at rank c+1 and goes up, so every rank gets the same bits, and the order depends
/// on where an element lies in the data.
class Ring final : public Algorithm {
 public:
  static constexpr std::size_t most_lanes = 16;
  /// How many segments a chunk of so many bytes is cut into.
  [[nodiscard]] static constexpr std::size_t segments_of(std::size_t chunk_bytes, std::size_t segment_bytes) noexcept {
    return std::max((chunk_bytes + segment_bytes - 1) / segment_bytes,
                    chunk_bytes > worth_cutting ? std::size_t{2} : std::size_t{1});
  }

  /// @param data  the same count and type on every rank; any count, also 0 or fewer than n elements. Outlives this
  /// object.
  /// @param reduction  over as many ranks as count for a mean, which may be more than the transport's
  /// @param chunks  of the data, by rank; empty: even ones
  /// @param segment_bytes  the longest message; the same on every rank
  Ring(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
       RingPart part = RingPart::allreduce, std::vector<Range> chunks = {},
       std::size_t segment_bytes = short_message_bytes);

  /// Collective over the transport's ranks. Throws, where it is awaited, what the transport reports.
  Task run() override;
  void each_traffic(const std::function<void(Traffic&)>& look) override { look(*transport_); }

 private:
  static constexpr std::size_t worth_cutting = 4096;  ///< bytes of a chunk; for shorter ones only latency counts

  void start(std::size_t item);
  void take(std::size_t item);
  /// The segment that this rank receives as `item`, and passes on one step later.
  [[nodiscard]] Elements incoming_segment(std::size_t item) const noexcept;
  [[nodiscard]] Elements outgoing_segment(std::size_t item) const noexcept;
  [[nodiscard]] Elements segment(int chunk, std::size_t index) const noexcept;
  [[nodiscard]] bool sums(std::size_t item) const noexcept { return item < summing_items_; }
  /// Whether what is received as `item` ends its way around: a part of the chunk that this rank finishes.
  [[nodiscard]] bool completes(std::size_t item) const noexcept {
    return sums(item) && item + segments_ >= summing_items_;
  }
  [[nodiscard]] std::span<std::byte> scratch(std::size_t item) const noexcept;

  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  RingPart part_;
  std::vector<Range> chunks_;  ///< by rank; empty: even ones
  std::size_t segments_;       ///< of each chunk
  std::size_t first_item_, end_item_, summing_items_;
  std::size_t scratch_bytes_ = 0;
  Buffer scratch_;                            ///< a segment for each lane
  std::vector<Request> outgoing_, incoming_;  ///< by lane
};

}  // namespace ronda
