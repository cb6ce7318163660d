#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>

namespace ronda {

/// Tracks which buckets of gradients are complete in a step. Gradients become ready in any order, but buckets count as
/// complete only in bucket order, so that all ranks reduce them in the same order. Allocates nothing after
/// construction.
class ReadyBuckets {
 public:
  /// Throws LogicError if a parameter has two gradients.
  ReadyBuckets(std::vector<GradientSlot> slots, std::span<const FusionBuffer::Bucket> buckets);

  /// Begins a step: no gradient is ready.
  void begin();
  /// Marks the gradient of `id` as ready. Throws LogicError if the buckets have no such gradient, or if it was already
  /// marked in this step.
  void mark(ParameterId id);
  /// Marks all gradients as ready.
  void mark_all() noexcept;
  /// Number of leading buckets whose gradients are all ready.
  [[nodiscard]] std::size_t full() const noexcept { return full_; }
  /// Throws LogicError, which names the gradient, if one is not marked.
  void require_all() const;

 private:
  void count_full() noexcept;

  std::vector<GradientSlot> slots_;
  std::vector<std::size_t> slot_of_id_, bucket_of_slot_, slots_of_bucket_;
  std::vector<char> marked_;          ///< per slot
  std::vector<std::size_t> missing_;  ///< per bucket: slots not yet marked
  std::size_t full_ = 0;
};

}  // namespace ronda
