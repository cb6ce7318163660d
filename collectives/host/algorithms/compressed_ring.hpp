#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <ronda/collectives/host/engine/algorithm.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/transport/transport.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/buffer.hpp>

namespace ronda {

/// The allreduce of Ring with numbers that are cast to 16 bits on the wire: half the bytes.
///
/// A rank adds its part to a received segment in float32, and casts the sum for the next rank. The rank that adds the
/// last part casts the complete sum, and keeps the numbers that the others will decode; they pass on the bytes that
/// they received. So all ranks have the same bits. A segment received as an item is sent one step later, from the slot
/// into which it was received.
///
/// Cost: 2(n-1) latencies and (n-1)/n of the data's bytes. A sum is rounded n times, once a hop.
class CompressedRing final : public Algorithm {
 public:
  /// @param data  float32; as Ring's
  /// @param reduction  a sum or a mean
  /// @param wire  bf16 or fp16
  /// @param segment_bytes  on the wire
  CompressedRing(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction, const Wire& wire,
                 std::size_t segment_bytes = short_message_bytes);

  Task run() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { visit(*transport_); }
  [[nodiscard]] std::size_t memory() const noexcept override { return slots_.bytes(); }

 private:
  void post(std::size_t item);
  void process(std::size_t item);
  /// The segment that is received as `item`, and sent as `item + segments_`.
  [[nodiscard]] Elements segment(std::size_t item) const noexcept;
  [[nodiscard]] std::span<std::byte> slot(std::size_t item) const noexcept;

  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  Compression compression_;
  // Items are numbered as Ring's, but from the segments of the chunk that this rank sends first: it receives none.
  std::size_t segments_;                ///< in each chunk
  std::size_t summing_end_, end_item_;  ///< items below are added; all items
  std::size_t slot_bytes_ = 0;
  Buffer slots_;                              ///< one for each item that is received and not yet sent
  std::vector<Request> outgoing_, incoming_;  ///< by lane: see Ring
};

}  // namespace ronda
