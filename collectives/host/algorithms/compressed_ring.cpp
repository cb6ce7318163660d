#include <ronda/collectives/host/algorithms/compressed_ring.hpp>
#include <ronda/collectives/host/algorithms/ring.hpp>

#include <algorithm>

namespace ronda {
namespace {

std::span<float> floats(const Elements& elements) noexcept {
  return {reinterpret_cast<float*>(elements.data), elements.count};
}

}  // namespace

CompressedRing::CompressedRing(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                               const Wire& wire, std::size_t segment_bytes)
    : transport_(std::move(transport)), data_(data), reduction_(reduction), compression_(wire.compression) {
  const auto ranks = static_cast<std::size_t>(transport_->size());
  const std::size_t longest_chunk = (data_.count + ranks - 1) / ranks;
  segments_ = Ring::segments_of(wire_bytes(compression_, longest_chunk), segment_bytes);
  const std::size_t lanes = std::min(segments_, Ring::most_lanes);
  outgoing_.resize(lanes);
  incoming_.resize(lanes);
  summing_end_ = ranks * segments_;
  end_item_ = (2 * ranks - 1) * segments_;
  const std::size_t largest_segment_bytes = wire_bytes(compression_, (longest_chunk + segments_ - 1) / segments_);
  slot_bytes_ = Buffer::aligned(largest_segment_bytes);
  if (ranks > 1) slots_ = Buffer::host((segments_ + lanes) * slot_bytes_);
}

Task CompressedRing::run() {
  const std::size_t lanes = incoming_.size();
  if (transport_->size() == 1) {
    divide_if_mean(reduction_, data_);
    co_return;
  }
  for (std::size_t item = segments_; item < segments_ + lanes; ++item) post(item);
  for (std::size_t item = segments_; item < end_item_; ++item) {
    Request& incoming = incoming_[item % lanes];
    Request& outgoing = outgoing_[item % lanes];
    co_await incoming;
    process(item);
    co_await outgoing;
    if (item + lanes < end_item_) post(item + lanes);
  }
}

/// All items up to `item - lanes` are complete. There are `lanes` more slots than segments in a chunk: so nothing is
/// received into a slot that is still to be sent.
void CompressedRing::post(std::size_t item) {
  const int ranks = transport_->size();
  const int left = (transport_->rank() + ranks - 1) % ranks, right = (transport_->rank() + 1) % ranks;
  const std::size_t out = item - segments_;
  if (out < segments_) encode(compression_, floats(segment(out)), nullptr, Noise(), slot(out).data());
  const std::size_t lane = item % incoming_.size();
  incoming_[lane] = transport_->receive(left, slot(item));
  outgoing_[lane] = transport_->send(right, slot(out));
}

void CompressedRing::process(std::size_t item) {
  const std::span<float> values = floats(segment(item));
  std::byte* const wire = slot(item).data();
  if (item >= summing_end_) {
    decode(compression_, wire, values);
  } else if (item + segments_ >= summing_end_) {  // this rank adds the last part
    decode_and_add(compression_, wire, values);
    divide_if_mean(reduction_, segment(item));
    encode_and_keep(compression_, values, nullptr, Noise(), wire);
  } else {
    add_to_wire(compression_, values, wire);
  }
}

Elements CompressedRing::segment(std::size_t item) const noexcept {
  const auto ranks = static_cast<std::size_t>(transport_->size());
  const std::size_t chunk = (static_cast<std::size_t>(transport_->rank()) + 2 * ranks - 1 - item / segments_) % ranks;
  const Elements whole = data_.part(part_of(data_.count, chunk, ranks));
  return whole.part(part_of(whole.count, item % segments_, segments_));
}

std::span<std::byte> CompressedRing::slot(std::size_t item) const noexcept {
  return {slots_.data() + item % (segments_ + incoming_.size()) * slot_bytes_,
          wire_bytes(compression_, segment(item).count)};
}

}  // namespace ronda
