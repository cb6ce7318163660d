#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <ronda/collectives/fusion_buffer.hpp>

namespace ronda {

/// Which buckets of gradients are full in a step. Gradients become ready in any order; buckets count as full in theirs,
/// so that all ranks send them in one order. Allocates nothing after construction.
class ReadyBuckets {
 public:
  /// Throws LogicError where a parameter has two gradients.
  ReadyBuckets(std::vector<GradientSlot> slots, std::span<const FusionBuffer::Bucket> buckets);

  /// A step begins: no gradient is ready.
  void begin();
  /// The gradient of `id` is. Throws LogicError where there is none of it, or it was ready before.
  void mark(ParameterId id);
  /// All are, whatever was marked.
  void mark_all() noexcept;
  /// So many buckets, the first ones, have all of their gradients.
  [[nodiscard]] std::size_t full() const noexcept { return full_; }
  /// Throws LogicError, which names the gradient, where one is not ready.
  void require_all() const;

 private:
  void count_full() noexcept;

  std::vector<GradientSlot> slots_;
  std::vector<std::size_t> slot_of_id_, bucket_of_slot_, slots_of_bucket_;
  std::vector<char> marked_;          ///< by slot
  std::vector<std::size_t> missing_;  ///< by bucket: slots that are not marked
  std::size_t full_ = 0;
};

}  // namespace ronda
