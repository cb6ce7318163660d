#pragma once
#include <cstddef>
#include <span>
#include <string>

#include <ronda/collectives/host/algorithms/error_feedback.hpp>
#include <ronda/collectives/host/reduction.hpp>
#include <ronda/collectives/host/wire_format.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/state.hpp>

namespace ronda {

/// The numbers of an algorithm in which pairs of ranks exchange parts of their data, as they travel: as they are, or
/// compressed. So the algorithm's text is the same for both.
///
/// Who packs keeps what the partner will unpack, so that both compute with the same numbers. All the data, packed, is
/// the *image*; without compression that is the data itself, and packing does nothing.
class Packing {
 public:
  /// @param data  float32 where it is compressed; outlives this object
  /// @param residuals  how often in a run the same element is packed; what each time loses is kept for the next run
  Packing(Elements data, const Wire& wire, std::size_t residuals = 1);

  /// Where data may be cut: a multiple of so many elements.
  [[nodiscard]] std::size_t granule() const noexcept { return granule_of(wire_.compression); }
  void begin_run() noexcept { feedback_.begin_run(); }

  /// Packs these elements for a partner, who has image(range), or room, to receive them in.
  /// @param time   of this run, below `residuals`
  /// @param packer  whoever packs the same numbers gives the same: equal bits where several ranks have the same
  std::span<const std::byte> pack(Range range, std::size_t time, int packer);
  /// These elements in the image. Receiving into it is the way to replace them; `unpack` does it.
  [[nodiscard]] std::span<std::byte> image(Range range) const noexcept;
  void unpack(Range range);
  /// Where a partner's elements are received that are to be combined with the data's.
  [[nodiscard]] std::span<std::byte> room(Range range) const noexcept;
  void combine(ReduceOp op, Range range);

  void visit(const std::string& name, StateVisitor& visitor) { feedback_.visit(name, visitor); }
  [[nodiscard]] std::size_t memory() const noexcept {
    return compressed() ? image_.bytes() + feedback_.bytes() + room_.bytes() : 0;
  }

 private:
  [[nodiscard]] bool compressed() const noexcept { return wire_.compression != Compression::none; }
  [[nodiscard]] std::span<float> values(Range range) const noexcept;

  Elements data_;
  Wire wire_;
  Buffer room_, image_;
  ErrorFeedback feedback_;
};

}  // namespace ronda
