#include <ronda/collectives/ready_buckets.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t no_slot = std::numeric_limits<std::size_t>::max();

std::vector<std::size_t> slots_by_id(std::span<const GradientSlot> slots) {
  std::vector<std::size_t> by_id;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::size_t id = index_of(slots[i].id);
    if (id >= by_id.size()) by_id.resize(id + 1, no_slot);
    if (by_id[id] != no_slot) throw LogicError("parameter " + slots[i].name + " has two gradients in the buckets");
    by_id[id] = i;
  }
  return by_id;
}

}  // namespace

ReadyBuckets::ReadyBuckets(std::vector<GradientSlot> slots, std::span<const FusionBuffer::Bucket> buckets)
    : slots_(std::move(slots)),
      slot_of_id_(slots_by_id(slots_)),
      bucket_of_slot_(slots_.size()),
      marked_(slots_.size()),
      missing_(buckets.size()) {
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    slots_of_bucket_.push_back(buckets[bucket].end_slot - buckets[bucket].first_slot);
    for (std::size_t slot = buckets[bucket].first_slot; slot < buckets[bucket].end_slot; ++slot)
      bucket_of_slot_[slot] = bucket;
  }
}

void ReadyBuckets::begin() {
  std::ranges::fill(marked_, char{0});
  missing_ = slots_of_bucket_;
  full_ = 0;
  count_full();  // a model without parameters has one bucket without gradients
}

void ReadyBuckets::mark(ParameterId id) {
  const std::size_t slot = index_of(id) < slot_of_id_.size() ? slot_of_id_[index_of(id)] : no_slot;
  if (slot == no_slot)
    throw LogicError("parameter " + std::to_string(index_of(id)) + " has no gradient in the buckets");
  if (marked_[slot]) throw LogicError("the gradient of " + slots_[slot].name + " was marked ready twice in a step");
  marked_[slot] = 1;
  --missing_[bucket_of_slot_[slot]];
  count_full();
}

void ReadyBuckets::mark_all() noexcept {
  std::ranges::fill(missing_, std::size_t{0});
  count_full();
}

void ReadyBuckets::count_full() noexcept {
  while (full_ < missing_.size() && missing_[full_] == 0) ++full_;
}

void ReadyBuckets::require_all() const {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    if (!marked_[slot])
      throw LogicError("the gradient of " + slots_[slot].name + " was never marked ready in this step");
}

}  // namespace ronda
