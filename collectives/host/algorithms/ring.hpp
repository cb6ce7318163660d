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

/// Which part of the allreduce a ring runs.
enum class RingPart : std::uint8_t { allreduce, reduce_scatter, allgather };

/// Reduces data over all ranks, in place, by passing parts of it around a ring.
///
/// The n ranks sit in a circle; each sends only to its right neighbour and receives only from its left one. The data is
/// cut into n *chunks*. In n-1 steps of reduce-scatter every chunk passes all ranks, and each adds its part; in n-1
/// steps of allgather the complete sums pass all ranks. Three ranks, chunks a, b, c; capitals are complete sums:
///
///              start           2 steps of reduce-scatter       2 steps of allgather
///     rank 0   a0  b0  c0      A    .    .                     A  B  C
///     rank 1   a1  b1  c1      .    B    .                     A  B  C
///     rank 2   a2  b2  c2      .    .    C                     A  B  C
///
/// A chunk is sent in *segments*, so that one is added while the next is on its way. A rank receives one sequence of
/// segments and sends another. Each place in these sequences is an *item*, numbered from 0: the items of reduce-scatter
/// first, then those of allgather. *Lanes* are the segments in flight at a time: enough to keep the link busy. There
/// are never more lanes than segments in a chunk, because a rank can pass on a segment only one step after it received
/// it.
///
/// Each half can run alone: reduce-scatter ends with the complete chunk r on rank r, allgather begins with it. Chunks
/// may have any lengths; by default they are equal, or one element apart.
///
/// Cost: 2(n-1) latencies and 2(n-1)/n of the data over each link; no allreduce sends fewer bytes
/// (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 2009).
/// Order of summation: chunk c starts at rank c+1 and passes the ranks in ascending order, so every rank gets the same
/// bits, and the order depends on the element's place in the data.
class Ring final : public Algorithm {
 public:
  static constexpr std::size_t most_lanes = 16;  ///< at most so many segments are in flight each way
  /// The number of segments of a chunk: at least two if it is worth cutting, so that sending and adding overlap.
  [[nodiscard]] static constexpr std::size_t segments_of(std::size_t chunk_bytes, std::size_t segment_bytes) noexcept {
    return std::max((chunk_bytes + segment_bytes - 1) / segment_bytes,
                    chunk_bytes > worth_cutting ? std::size_t{2} : std::size_t{1});
  }

  /// @param data  the same count and type on every rank; any count, also 0 or fewer than n elements. Outlives this
  ///              object
  /// @param reduction  for a mean `ranks` is the divisor. It may be larger than the transport's size, as between the
  ///                   nodes of `hierarchical`
  /// @param chunks  of the data, by rank; empty: equal ones, or one element apart
  /// @param segment_bytes  the longest message; the same on every rank
  Ring(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
       RingPart part = RingPart::allreduce, std::vector<Range> chunks = {},
       std::size_t segment_bytes = short_message_bytes);

  /// Collective over the transport's ranks. Errors of the transport are thrown where the task is awaited.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }

 private:
  static constexpr std::size_t worth_cutting = 4096;  ///< bytes; below, cutting costs more latency than it saves

  void post(std::size_t item);
  void process(std::size_t item);
  /// The segment that this rank receives as `item`, and sends one step later.
  [[nodiscard]] Elements incoming_segment(std::size_t item) const noexcept;
  [[nodiscard]] Elements outgoing_segment(std::size_t item) const noexcept;
  [[nodiscard]] Elements segment(int chunk, std::size_t index) const noexcept;
  /// Whether `item` is added to this rank's data: it belongs to reduce-scatter.
  [[nodiscard]] bool is_summed(std::size_t item) const noexcept { return item < summing_items_; }
  /// Whether this rank adds the last part: the sum is then complete.
  [[nodiscard]] bool completes(std::size_t item) const noexcept {
    return is_summed(item) && item + segments_ >= summing_items_;
  }
  [[nodiscard]] std::span<std::byte> scratch(std::size_t item) const noexcept;

  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  RingPart part_;
  std::vector<Range> chunks_;                 ///< by rank; empty: equal ones, or one element apart
  std::size_t segments_;                      ///< in each chunk
  std::size_t first_item_, end_item_;         ///< the items that run
  std::size_t summing_items_;                 ///< items below are added, the others replace the rank's data
  std::size_t scratch_bytes_ = 0;             ///< of one lane
  Buffer scratch_;                            ///< memory for one received segment per lane
  std::vector<Request> outgoing_, incoming_;  ///< by lane
};

}  // namespace ronda
