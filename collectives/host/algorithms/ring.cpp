#include <ronda/collectives/host/algorithms/ring.hpp>

#include <algorithm>

namespace ronda {

Ring::Ring(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction, RingPart part,
           std::vector<Range> chunks, std::size_t segment_bytes)
    : transport_(std::move(transport)), data_(data), reduction_(reduction), part_(part), chunks_(std::move(chunks)) {
  const auto ranks = static_cast<std::size_t>(transport_->size());
  const std::size_t longest_chunk =
      chunks_.empty() ? (data_.count + ranks - 1) / ranks : std::ranges::max(chunks_, {}, &Range::size).size();
  segments_ = segments_of(longest_chunk * size_of(data_.dtype), segment_bytes);
  const std::size_t lanes = std::min(segments_, most_lanes);
  outgoing_.resize(lanes);
  incoming_.resize(lanes);

  const std::size_t items_per_half = (ranks - 1) * segments_;
  summing_items_ = items_per_half;
  first_item_ = part == RingPart::allgather ? items_per_half : 0;
  end_item_ = part == RingPart::reduce_scatter ? items_per_half : 2 * items_per_half;

  if (part == RingPart::allgather) return;
  const std::size_t largest_segment_bytes = (longest_chunk + segments_ - 1) / segments_ * size_of(data_.dtype);
  scratch_bytes_ = Buffer::aligned(largest_segment_bytes);
  scratch_ = Buffer::host(lanes * scratch_bytes_);
}

/// Posts as many items as there are lanes. Then for each item in order: waits for it, processes it, and posts the next
/// one in the same lane.
Task Ring::run() {
  const std::size_t lanes = incoming_.size();
  // One rank receives nothing, and its data is the sum.
  if (transport_->size() == 1 && part_ != RingPart::allgather) divide_if_mean(reduction_, data_);
  for (std::size_t item = first_item_; item < std::min(end_item_, first_item_ + lanes); ++item) post(item);
  for (std::size_t item = first_item_; item < end_item_; ++item) {
    Request& incoming = incoming_[item % lanes];
    Request& outgoing = outgoing_[item % lanes];
    co_await incoming;
    process(item);
    co_await outgoing;
    if (item + lanes < end_item_) post(item + lanes);
  }
}

/// Why the memory is free: all items up to `item - lanes` are complete, and a step has at least `lanes` items. So the
/// segment that is sent here was received and added one step ago. In allgather the memory that is written here was sent
/// n-1 steps ago, and is no longer read.
void Ring::post(std::size_t item) {
  const std::size_t lane = item % incoming_.size();
  const int ranks = transport_->size();
  const int left = (transport_->rank() + ranks - 1) % ranks, right = (transport_->rank() + 1) % ranks;
  const auto target = incoming_segment(item).bytes();
  incoming_[lane] = transport_->receive(left, is_summed(item) ? scratch(item).first(target.size()) : target);
  outgoing_[lane] = transport_->send(right, outgoing_segment(item).bytes());
}

void Ring::process(std::size_t item) {
  if (is_summed(item)) combine(reduction_.op, incoming_segment(item), scratch(item).data());
  if (completes(item)) divide_if_mean(reduction_, incoming_segment(item));
}

// In step s rank r sends chunk r-1-s and receives chunk r-2-s, counted around the ring.

Elements Ring::outgoing_segment(std::size_t item) const noexcept {
  const auto step = static_cast<int>(item / segments_);
  return segment(transport_->rank() - 1 - step, item % segments_);
}

Elements Ring::incoming_segment(std::size_t item) const noexcept {
  const auto step = static_cast<int>(item / segments_);
  return segment(transport_->rank() - 2 - step, item % segments_);
}

Elements Ring::segment(int chunk, std::size_t index) const noexcept {
  const int ranks = transport_->size();
  const auto wrapped = static_cast<std::size_t>((chunk % ranks + ranks) % ranks);
  const Elements whole =
      data_.part(chunks_.empty() ? part_of(data_.count, wrapped, static_cast<std::size_t>(ranks)) : chunks_[wrapped]);
  return whole.part(part_of(whole.count, index, segments_));
}

std::span<std::byte> Ring::scratch(std::size_t item) const noexcept {
  return {scratch_.data() + item % incoming_.size() * scratch_bytes_, scratch_bytes_};
}

}  // namespace ronda
