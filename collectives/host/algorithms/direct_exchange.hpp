#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/host/algorithms/error_feedback.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>
#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// Reduces data over all ranks, in place: each part goes straight to the rank that reduces it, and the result straight
/// to all.
///
/// The data is cut into n chunks, and rank r owns chunk r. Every rank sends its part of chunk r to r, which reduces
/// them and sends the result to all. Three ranks, rank 1's chunk b:
///
///     rank 0   b0 ──┐                   ┌──  B
///     rank 1   b1   ├─ B = b1 + b0 + b2 ┤    B
///     rank 2   b2 ──┘                   └──  B
///
/// Compressed, a number is rounded twice, by who sends its part and by the owner of the sum, however many ranks there
/// are, where a ring rounds it at each hop; the owner keeps what the others decode. What rounding to few bits takes
/// away stays with who rounded and is added in the next run: errors do not pile up (Seide et al., "1-bit stochastic
/// gradient descent", Interspeech 2014; Karimireddy et al., "Error feedback fixes SignSGD", ICML 2019; the exchange is
/// that of Tang et al., "1-bit Adam", ICML 2021). Not compressed, parts and results travel from and to the data itself.
///
/// Chunks go in segments: while one is reduced, others are on their way in, and the results of earlier ones on theirs
/// out.
///
/// Either half is a collective of its own: reduce-scatter ends with the sum of chunk r on rank r, not rounded;
/// allgather begins with it.
///
/// Cost: 2 latencies, 2(n-1) messages a rank and segment, and 2(n-1)/n of the data's bytes as the wire has them. Every
/// rank has a connection to every other one: for many ranks there is GridExchange.
/// Order of summation: the owner's part, then those of the ranks below it, downwards and around.
class DirectExchange final : public Algorithm {
 public:
  /// Segments that are on their way to their owners at a time, and as many on their way back.
  static constexpr std::size_t depth = 4;

  /// @param data  the same count and type on every rank, any count; float32 where it is compressed. Outlives this
  ///              object. Memory for the messages under way is taken here, once; with error feedback as much as the
  ///              data has again.
  /// @param reduction  a sum or a mean where it is compressed
  /// @param segment  elements of a message at most, whole granules of the wire; the same on every rank. 0: a short
  ///                 message's
  DirectExchange(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction, const Wire& wire,
                 RingPart part = RingPart::allreduce, std::size_t segment = 0);

  /// Collective over the transport's ranks.
  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }
  void visit(const std::string& name, StateVisitor& visitor) override { feedback_.visit(name, visitor); }
  [[nodiscard]] std::size_t memory() const noexcept override { return feedback_.bytes() + slots_.bytes(); }

 private:
  /// Of a segment, to all other ranks together: many ranks have shorter segments, so that slots stay few.
  static constexpr std::size_t elements_to_all = std::size_t{1} << 20;
  static constexpr std::size_t shortest_segment = std::size_t{8} * 512;

  /// A message of a segment, in one direction, with the memory that it is in where that is not the data's.
  struct Parcel {
    Request request;
    std::byte* slot = nullptr;
  };
  /// Those of one segment with all others; [k-1]: with the k-th rank above, or below.
  struct Round {
    std::vector<Parcel> parts_out, parts_in, sums_out, sums_in;
    std::byte* sum = nullptr;  ///< this rank's, which all sums_out send
  };

  void take_slots(std::size_t others);
  void send_parts(std::size_t segment);
  void send_sum(std::size_t segment);
  void add_part(std::size_t segment, int distance);
  void take_sum(std::size_t segment, int distance);
  /// Numbers as they travel: encoded into the slot, or where they lie.
  [[nodiscard]] std::span<const std::byte> packed_part(const Range& range, std::byte* slot);
  [[nodiscard]] std::span<const std::byte> packed_sum(const Range& range, std::byte* slot);
  [[nodiscard]] bool compressed() const noexcept { return wire_.compression != Compression::none; }
  [[nodiscard]] int above(int distance) const noexcept { return (transport_->rank() + distance) % transport_->size(); }
  [[nodiscard]] int below(int distance) const noexcept { return above(transport_->size() - distance); }
  [[nodiscard]] Range range(int owner, std::size_t segment) const noexcept;
  [[nodiscard]] std::size_t bytes(const Range& range) const noexcept;
  [[nodiscard]] std::span<float> values(const Range& range) const noexcept;
  [[nodiscard]] Noise noise(const Range& range) const noexcept;
  [[nodiscard]] float* lost(const Range& range) const noexcept { return feedback_.lost(range.begin - rounded_.begin); }
  [[nodiscard]] bool adds() const noexcept { return part_ != RingPart::allgather; }
  [[nodiscard]] bool hands_out() const noexcept { return part_ != RingPart::reduce_scatter; }
  [[nodiscard]] Round& round(std::size_t segment) noexcept { return rounds_[segment % rounds_.size()]; }

  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  Wire wire_;
  RingPart part_;
  std::size_t segment_, segments_ = 0;  ///< elements; how many the longest chunk has
  Range rounded_;                       ///< what this rank rounds
  ErrorFeedback feedback_;              ///< of `rounded_`: in this rank's own chunk of the sum, elsewhere of its part
  Buffer slots_;
  std::vector<Round> rounds_;
};

}  // namespace ronda
