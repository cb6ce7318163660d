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
/// A segment that comes in is added to in float32 and cast again for the next hop. Who ends a chunk's way casts the
/// result, and keeps what the others will make of it; they pass on the bytes that they got. So all ranks have the same
/// bits. What came in as an item goes out, changed or not, one step later; until then it stays where it came in.
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
  void each_traffic(const std::function<void(Traffic&)>& look) override { look(*transport_); }
  [[nodiscard]] std::size_t memory() const noexcept override { return slots_.bytes(); }

 private:
  void start(std::size_t item);
  void take(std::size_t item);
  /// The segment that comes in as `item`, and goes out as `item + segments_`.
  [[nodiscard]] Elements segment(std::size_t item) const noexcept;
  [[nodiscard]] std::span<std::byte> slot(std::size_t item) const noexcept;

  std::unique_ptr<Transport> transport_;
  Elements data_;
  Reduction reduction_;
  Compression compression_;
  // Items are counted from the segments of this rank's first outgoing chunk, which come in from nowhere.
  std::size_t segments_;                ///< of each chunk
  std::size_t summing_end_, end_item_;  ///< up to where items are summed, and all of them
  std::size_t slot_bytes_ = 0;
  Buffer slots_;                              ///< as many as there are items between coming in and having gone out
  std::vector<Request> outgoing_, incoming_;  ///< by lane: see Ring
};

}  // namespace ronda
