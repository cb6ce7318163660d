#include <ronda/collectives/ready_buckets.hpp>
#include <ronda/runtime/strategy/sharded/gradient_ring.hpp>

#include <algorithm>

namespace ronda {
namespace {

std::size_t end_of(const GradientSlot& slot) { return slot.offset + slot.bytes; }

/// By slot: the number of the call that begins to write it.
std::vector<std::size_t> calls_of(std::span<const GradientSlot> slots, std::span<const GradientWrites> writes) {
  std::vector<std::size_t> calls(slots.size(), writes.size());
  for (std::size_t call = writes.size(); call-- > 0;)
    for (const ParameterId id : writes[call].written)
      calls[static_cast<std::size_t>(std::ranges::find(slots, id, &GradientSlot::id) - slots.begin())] = call;
  return calls;
}

/// Buckets of neighbours up to the size that a bucket may have, but none is cut within what one call writes.
std::vector<FusionBuffer::Bucket> fill(std::span<const GradientSlot> slots, std::span<const std::size_t> calls,
                                       std::size_t most) {
  std::vector<GradientSlot> whole;  // neighbours of one call as one slot
  std::vector<std::size_t> ends;    // of their slots
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i == 0 || calls[i] != calls[i - 1]) {
      whole.push_back(slots[i]);
      ends.push_back(i);
    }
    whole.back().bytes = end_of(slots[i]) - whole.back().offset;
    ends.back() = i + 1;
  }
  auto buckets = FusionBuffer::fill(whole, {.first_bucket_bytes = most, .bucket_bytes = most});
  for (FusionBuffer::Bucket& bucket : buckets) {
    bucket.first_slot = bucket.first_slot > 0 ? ends[bucket.first_slot - 1] : 0;
    bucket.end_slot = bucket.end_slot > 0 ? ends[bucket.end_slot - 1] : 0;
  }
  return buckets;
}

/// Whether the gradient is complete before a call writes to any, after the one that begins it.
bool is_completed_alone(ParameterId id, std::size_t call, std::span<const GradientWrites> writes) {
  for (std::size_t next = call; next < writes.size() && (next == call || writes[next].written.empty()); ++next)
    if (std::ranges::count(writes[next].complete, id) > 0) return true;
  return false;
}

/// Bytes of the arena, its first and whole pages unless all, whose gradients are complete before backward writes to
/// the next one.
std::size_t bytes_in_order(std::span<const GradientSlot> slots, std::size_t bytes,
                           std::span<const GradientWrites> writes, std::span<const std::size_t> calls) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!is_completed_alone(slots[i].id, calls[i], writes)) return slots[i].offset - slots[i].offset % whole_pages(1);
  return bytes;
}

/// Element d: the end of what backward writes of the first `repeated` bytes of the arena while the first d buckets are
/// complete, and no more; 0: nothing.
std::vector<std::size_t> written_ends(std::span<const GradientSlot> slots, std::span<const GradientWrites> writes,
                                      std::span<const std::size_t> calls, std::span<const FusionBuffer::Bucket> buckets,
                                      std::size_t repeated) {
  std::vector<std::size_t> ends(buckets.size() + 1);
  ReadyBuckets ready({slots.begin(), slots.end()}, buckets);
  ready.begin();
  for (std::size_t call = 0; call < writes.size(); ++call) {
    std::size_t& end = ends[ready.full()];
    for (std::size_t i = 0; i < slots.size(); ++i)
      if (calls[i] == call && slots[i].offset < repeated) end = std::max(end, std::min(end_of(slots[i]), repeated));
    for (const ParameterId id : writes[call].complete) ready.mark(id);
  }
  return ends;
}

}  // namespace

GradientRing::GradientRing(std::span<const GradientSlot> slots, std::size_t bytes,
                           std::span<const GradientWrites> writes, std::size_t most) {
  const std::vector<std::size_t> calls = calls_of(slots, writes);
  buckets = fill(slots, calls, most);
  memory.repeated = bytes_in_order(slots, bytes, writes, calls);
  memory.rest = bytes - memory.repeated;
  const std::vector<std::size_t> ends = written_ends(slots, writes, calls, buckets, memory.repeated);
  for (std::size_t d = 0; d < ends.size(); ++d) {
    const std::size_t open = buckets[d > 0 ? d - 1 : 0].offset;  // the first that may not be summed yet
    memory.period = std::max(memory.period, whole_pages(ends[d] - std::min(open, ends[d])));
  }
  for (std::size_t d = 0; d < ends.size(); ++d) {
    std::size_t& summed = summed_before.emplace_back();
    while (summed < d && buckets[summed].offset + memory.period < ends[d]) ++summed;
  }
}

}  // namespace ronda
