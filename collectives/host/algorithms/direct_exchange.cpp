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
  const std::size_t share = std::max(shortest_segment, elements_to_all / others / granule * granule);
  const std::size_t longest = (data_.count + ranks - 1) / ranks;
  segment_ = std::min({segment, share, (longest + granule - 1) / granule * granule});
  if (segment_ == 0) return;  // no data
  segments_ = (longest + segment_ - 1) / segment_;

  rounded_ = adds() ? Range{0, data_.count} : part_of(data_.count, static_cast<std::size_t>(transport_->rank()), ranks);
  const std::size_t slot_bytes = Buffer::aligned(wire_bytes(wire_.compression, segment_));
  rounds_.resize(std::min(2 * depth + 1, segments_));
  const std::size_t slots_to_all = (adds() ? 2 : 0) + (hands_out() ? 1 : 0);
  slots_ = Buffer::host(rounds_.size() * (slots_to_all * others + 1) * slot_bytes);
  std::byte* next = slots_.data();
  const auto take = [&] { return std::exchange(next, next + slot_bytes); };
  for (Round& one : rounds_) {
    one.sum = take();
    one.sums_out.resize(others);
    for (auto* parcels : {&one.parts_out, &one.parts_in, &one.sums_in}) {
      parcels->resize(others);
      const bool used = parcels == &one.sums_in ? hands_out() : adds();
      for (Parcel& parcel : *parcels) parcel.slot = used ? take() : nullptr;
    }
  }
  feedback_ = ErrorFeedback(rounded_.size());
}

Task DirectExchange::run() {
  feedback_.begin_run();
  if (transport_->size() == 1 && part_ == RingPart::allreduce) finish(reduction_, data_);
  const int ranks = transport_->size();
  for (std::size_t beat = 0; segments_ > 0 && beat < segments_ + 2 * depth; ++beat) {
    if (adds() && beat < segments_) send_parts(beat);
    if (beat >= depth && beat - depth < segments_) {
      const std::size_t segment = beat - depth;
      for (int distance = 1; adds() && distance < ranks; ++distance) {
        Request& part = round(segment).parts_in[static_cast<std::size_t>(distance) - 1].request;
        co_await part;
        add_part(segment, distance);
      }
      if (hands_out()) send_sum(segment);
    }
    if (beat >= 2 * depth) {
      const std::size_t segment = beat - 2 * depth;
      for (int distance = 1; distance < ranks; ++distance) {
        const auto k = static_cast<std::size_t>(distance) - 1;
        Request& sum = round(segment).sums_in[k].request;
        co_await sum;
        if (hands_out()) take_sum(segment, distance);
        Request& part_out = round(segment).parts_out[k].request;
        co_await part_out;
        Request& sum_out = round(segment).sums_out[k].request;
        co_await sum_out;
      }
    }
  }
}

void DirectExchange::send_parts(std::size_t segment) {
  const Range own = range(transport_->rank(), segment);
  for (int distance = 1; distance < transport_->size(); ++distance) {
    Parcel& incoming = round(segment).parts_in[static_cast<std::size_t>(distance) - 1];
    Parcel& outgoing = round(segment).parts_out[static_cast<std::size_t>(distance) - 1];
    const Range theirs = range(above(distance), segment);
    incoming.request = transport_->receive(below(distance), {incoming.slot, bytes(own)});
    encode(wire_.compression, values(theirs), lost(theirs), noise(theirs), outgoing.slot);
    outgoing.request = transport_->send(above(distance), {outgoing.slot, bytes(theirs)});
  }
}

void DirectExchange::add_part(std::size_t segment, int distance) {
  const Parcel& part = round(segment).parts_in[static_cast<std::size_t>(distance) - 1];
  decode_and_add(wire_.compression, part.slot, values(range(transport_->rank(), segment)));
}

void DirectExchange::send_sum(std::size_t segment) {
  Round& now = round(segment);
  const Range own = range(transport_->rank(), segment);
  if (part_ == RingPart::allreduce) finish(reduction_, data_.part(own));
  encode_and_keep(wire_.compression, values(own), lost(own), noise(own), now.sum);
  for (int distance = 1; distance < transport_->size(); ++distance) {
    Parcel& incoming = now.sums_in[static_cast<std::size_t>(distance) - 1];
    Parcel& outgoing = now.sums_out[static_cast<std::size_t>(distance) - 1];
    incoming.request = transport_->receive(below(distance), {incoming.slot, bytes(range(below(distance), segment))});
    outgoing.request = transport_->send(above(distance), {now.sum, bytes(own)});
  }
}

void DirectExchange::take_sum(std::size_t segment, int distance) {
  const Parcel& sum = round(segment).sums_in[static_cast<std::size_t>(distance) - 1];
  decode(wire_.compression, sum.slot, values(range(below(distance), segment)));
}

/// Segment `segment` of the chunk of rank `owner`: elements of the data.
Range DirectExchange::range(int owner, std::size_t segment) const noexcept {
  const Range chunk =
      part_of(data_.count, static_cast<std::size_t>(owner), static_cast<std::size_t>(transport_->size()));
  const std::size_t begin = std::min(chunk.begin + segment * segment_, chunk.end);
  return {begin, std::min(begin + segment_, chunk.end)};
}

std::size_t DirectExchange::bytes(const Range& range) const noexcept {
  return wire_bytes(wire_.compression, range.size());
}

std::span<float> DirectExchange::values(const Range& range) const noexcept {
  return {reinterpret_cast<float*>(data_.data) + range.begin, range.size()};
}

/// Another one for every run, rank and segment.
Noise DirectExchange::noise(const Range& range) const noexcept {
  return feedback_.noise(wire_.noise, transport_->rank()).at(range.begin);
}

}  // namespace ronda
