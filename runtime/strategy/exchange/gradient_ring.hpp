#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/layers/program.hpp>

namespace ronda {

/// The memory of gradients of which a rank keeps those alone that are not summed yet. It has a part of the arena's
/// bytes: byte i of the arena is byte i mod `bytes` of it (repeat). So backward writes where it always does, but
/// before it writes to a byte the gradient that was there, `bytes` before it in the arena, must be summed. Backward
/// finishes *buckets*, neighbours in the arena, one after another, and waits only where the sums are late:
///
///     arena      bucket 0 | bucket 1 | bucket 2 | bucket 3 | …
///     memory     [-------------------][-------------------]      two buckets: bucket 2 is where bucket 0 was
///
/// A value, the same on all ranks.
struct GradientRing {
  /// @param slots   of the arena, in its order
  /// @param writes  of backward (Program::gradient_writes)
  /// @param most    bytes of a bucket; what one call of backward writes is never cut, and may make it larger
  GradientRing(std::span<const GradientSlot> slots, std::span<const GradientWrites> writes, std::size_t most);

  std::vector<FusionBuffer::Bucket> buckets;
  /// Of the memory: whole pages, and as many as two neighbours take that backward is at. As many as the arena has where
  /// backward begins with a gradient that it ends with, that of a parameter which several layers read.
  std::size_t bytes = 0;
  /// Element d: when the first d buckets are complete, so many of them must be summed before backward goes on; at most
  /// d - 1.
  std::vector<std::size_t> summed_before;
};

}  // namespace ronda
