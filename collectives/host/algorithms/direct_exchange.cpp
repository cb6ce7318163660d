#include <ronda/collectives/host/algorithms/direct_exchange.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

DirectExchange::DirectExchange(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                               const Wire& wire, RingPart part, std::size_t segment)
    : transport_(std::move(transport)), data_(data), reduction_(reduction), wire_(wire), part_(part) {
  const auto ranks = static_cast<std::size_t>(transport_->size()), others = ranks - 1;
  if (others == 0) return;
  const std::size_t granule = granule_of(wire_.compression);
  const std::size_t granule_bytes = compressed() ? wire_bytes(wire_.compression, granule) : size_of(data_.dtype);
  if (segment == 0) segment = short_message_bytes / granule_bytes * granule;
  const std::size_t share = std::max(shortest_segment, elements_to_all / others / granule * granule);
  const std::size_t longest = (data_.count + ranks - 1) / ranks;
  segment_ = std::min({segment, share, (longest + granule - 1) / granule * granule});
  if (segment_ == 0) return;  // no data
  segments_ = (longest + segment_ - 1) / segment_;
  take_slots(others);
  rounded_ = adds() ? Range{0, data_.count} : part_of(data_.count, static_cast<std::size_t>(transport_->rank()), ranks);
  if (keeps_lost(wire_.compression)) feedback_ = ErrorFeedback(rounded_.size());
}

/// Parts that come in have a slot each; what else there is, only where the wire is not the data itself.
void DirectExchange::take_slots(std::size_t others) {
  const std::size_t slot_bytes =
      Buffer::aligned(compressed() ? wire_bytes(wire_.compression, segment_) : segment_ * size_of(data_.dtype));
  rounds_.resize(std::min(2 * depth + 1, segments_));
  const bool parts_out = adds() && compressed(), sums_in = hands_out() && compressed();
  const std::size_t slots =
      (static_cast<std::size_t>(adds()) + static_cast<std::size_t>(parts_out) + static_cast<std::size_t>(sums_in)) *
          others +
      static_cast<std::size_t>(compressed());
  slots_ = Buffer::host(rounds_.size() * slots * slot_bytes);
  std::byte* next = slots_.data();
  const auto take = [&](bool used) { return used ? std::exchange(next, next + slot_bytes) : nullptr; };
  for (Round& one : rounds_) {
    one.sum = take(compressed());
    for (auto* parcels : {&one.parts_out, &one.parts_in, &one.sums_out, &one.sums_in}) parcels->resize(others);
    for (Parcel& parcel : one.parts_out) parcel.slot = take(parts_out);
    for (Parcel& parcel : one.parts_in) parcel.slot = take(adds());
    for (Parcel& parcel : one.sums_in) parcel.slot = take(sums_in);
  }
}

Task DirectExchange::run() {
  feedback_.begin_run();
  if (transport_->size() == 1 && part_ == RingPart::allreduce) divide_if_mean(reduction_, data_);
  const std::size_t others = static_cast<std::size_t>(transport_->size()) - 1;
  for (std::size_t beat = 0; segments_ > 0 && beat < segments_ + 2 * depth; ++beat) {
    if (adds() && beat < segments_) send_parts(beat);
    if (beat >= depth && beat - depth < segments_) {
      const std::size_t segment = beat - depth;
      for (std::size_t k = 0; adds() && k < others; ++k) {
        Request& part = round(segment).parts_in[k].request;
        co_await part;
        add_part(segment, static_cast<int>(k) + 1);
      }
      for (std::size_t k = 0; k < others; ++k) {  // what is sent is not to be overwritten by a sum
        Request& part_out = round(segment).parts_out[k].request;
        co_await part_out;
      }
      if (hands_out()) send_sum(segment);
    }
    if (beat >= 2 * depth) {
      const std::size_t segment = beat - 2 * depth;
      for (std::size_t k = 0; hands_out() && k < others; ++k) {
        Request& sum = round(segment).sums_in[k].request;
        co_await sum;
        take_sum(segment, static_cast<int>(k) + 1);
        Request& sum_out = round(segment).sums_out[k].request;
        co_await sum_out;
      }
    }
  }
}

void DirectExchange::send_parts(std::size_t segment) {
  const std::size_t own = bytes(range(transport_->rank(), segment));
  for (int distance = 1; distance < transport_->size(); ++distance) {
    Parcel& incoming = round(segment).parts_in[static_cast<std::size_t>(distance) - 1];
    Parcel& outgoing = round(segment).parts_out[static_cast<std::size_t>(distance) - 1];
    incoming.request = transport_->receive(below(distance), {incoming.slot, own});
    outgoing.request = transport_->send(above(distance), packed_part(range(above(distance), segment), outgoing.slot));
  }
}

void DirectExchange::add_part(std::size_t segment, int distance) {
  const Parcel& part = round(segment).parts_in[static_cast<std::size_t>(distance) - 1];
  const Range own = range(transport_->rank(), segment);
  if (compressed())
    decode_and_add(wire_.compression, part.slot, values(own));
  else
    combine(reduction_.op, data_.part(own), part.slot);
}

void DirectExchange::send_sum(std::size_t segment) {
  Round& now = round(segment);
  const Range own = range(transport_->rank(), segment);
  if (part_ == RingPart::allreduce) divide_if_mean(reduction_, data_.part(own));
  const std::span<const std::byte> sum = packed_sum(own, now.sum);
  for (int distance = 1; distance < transport_->size(); ++distance) {
    Parcel& incoming = now.sums_in[static_cast<std::size_t>(distance) - 1];
    Parcel& outgoing = now.sums_out[static_cast<std::size_t>(distance) - 1];
    const Range theirs = range(below(distance), segment);
    incoming.request = transport_->receive(
        below(distance), compressed() ? std::span(incoming.slot, bytes(theirs)) : data_.part(theirs).bytes());
    outgoing.request = transport_->send(above(distance), sum);
  }
}

void DirectExchange::take_sum(std::size_t segment, int distance) {
  if (!compressed()) return;  // it has come to where it belongs
  const Parcel& sum = round(segment).sums_in[static_cast<std::size_t>(distance) - 1];
  decode(wire_.compression, sum.slot, values(range(below(distance), segment)));
}

std::span<const std::byte> DirectExchange::packed_part(const Range& range, std::byte* slot) {
  if (!compressed()) return data_.part(range).bytes();
  encode(wire_.compression, values(range), lost(range), noise(range), slot);
  return {slot, bytes(range)};
}

std::span<const std::byte> DirectExchange::packed_sum(const Range& range, std::byte* slot) {
  if (!compressed()) return data_.part(range).bytes();
  encode_and_keep(wire_.compression, values(range), lost(range), noise(range), slot);
  return {slot, bytes(range)};
}

/// Segment `segment` of the chunk of rank `owner`: elements of the data.
Range DirectExchange::range(int owner, std::size_t segment) const noexcept {
  const Range chunk =
      part_of(data_.count, static_cast<std::size_t>(owner), static_cast<std::size_t>(transport_->size()));
  const std::size_t begin = std::min(chunk.begin + segment * segment_, chunk.end);
  return {begin, std::min(begin + segment_, chunk.end)};
}

std::size_t DirectExchange::bytes(const Range& range) const noexcept {
  return compressed() ? wire_bytes(wire_.compression, range.size()) : range.size() * size_of(data_.dtype);
}

std::span<float> DirectExchange::values(const Range& range) const noexcept {
  return {reinterpret_cast<float*>(data_.data) + range.begin, range.size()};
}

/// Another one for every run, rank and segment.
Noise DirectExchange::noise(const Range& range) const noexcept {
  return feedback_.noise(wire_.noise, transport_->rank()).at(range.begin);
}

}  // namespace ronda
