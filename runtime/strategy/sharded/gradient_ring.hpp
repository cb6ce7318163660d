#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/repeated_memory.hpp>
#include <ronda/layers/program.hpp>

namespace ronda {

/// The memory of gradients of which a rank keeps those alone that are not summed yet: the arena's addresses show a
/// smaller memory again and again. So backward writes where it always does, but before it writes to a byte, the
/// gradient that was there, a period before it in the arena, must be summed. Backward finishes *buckets*, neighbours in
/// the arena, one after another, and waits only where the sums are late:
///
///     arena      bucket 0 | bucket 1 | bucket 2 | bucket 3 | …
///     memory     [-------------------][-------------------]      two buckets: bucket 2 is where bucket 0 was
///
/// A gradient that backward begins long before it completes it, that of a parameter which several layers read, has
/// memory of its own, as all that lie behind it in the arena; an embedding that is an output layer too is the last one.
///
/// A value, the same on all ranks.
struct GradientRing {
  /// @param slots   of the arena, in its order
  /// @param bytes   of the arena
  /// @param writes  of backward (Program::gradient_writes)
  /// @param most    bytes of a bucket; but what one call of backward writes is never cut, and one gradient may be
  /// larger
  GradientRing(std::span<const GradientSlot> slots, std::size_t bytes, std::span<const GradientWrites> writes,
               std::size_t most);

  std::vector<FusionBuffer::Bucket> buckets;
  /// Of the arena. The period is as long as two neighbours that backward is at; the rest is not shown again.
  Repetition memory;
  /// Element d: when the first d buckets are complete, so many of them must be summed before backward goes on; at most
  /// d - 1.
  std::vector<std::size_t> summed_before;
};

}  // namespace ronda
