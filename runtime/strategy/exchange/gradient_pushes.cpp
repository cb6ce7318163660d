#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/multiversion.hpp>
#include <ronda/runtime/strategy/exchange/gradient_pushes.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t no_place = std::numeric_limits<std::size_t>::max();
constexpr std::size_t floats_a_line = 16;

Tensor slice_of(const Buffer& arena, const Range& elements) {
  return Tensor(std::span(reinterpret_cast<float*>(arena.data()) + elements.begin, elements.size()));
}

std::string label_of(const PushedPiece& piece) { return "bucket " + std::to_string(piece.bucket); }

RONDA_MULTIVERSION void add_numbers(const float* __restrict more, float* __restrict sums, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += more[i];
}

}  // namespace

std::vector<FusionBuffer::Bucket> buckets_to_push(const std::vector<GradientSlot>& slots,
                                                  const FusionOptions& options) {
  auto buckets = FusionBuffer::fill(slots, options);
  for (FusionBuffer::Bucket& bucket : buckets) bucket.algorithm = "push";
  return buckets;
}

std::vector<std::string> describe_pushes(std::span<const FusionBuffer::Bucket> buckets) {
  std::vector<std::string> lines;
  for (const FusionBuffer::Bucket& bucket : buckets)
    lines.push_back("bucket " + std::to_string(lines.size()) + ": slots " + std::to_string(bucket.first_slot) + " to " +
                    std::to_string(bucket.end_slot) + ", " + std::to_string(bucket.bytes) +
                    " bytes, pushed to servers");
  return lines;
}

std::vector<PushedPiece> cut_buckets(std::span<const FusionBuffer::Bucket> buckets, std::span<const Range> shares) {
  std::vector<PushedPiece> pieces;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const std::size_t first = buckets[bucket].offset / sizeof(float);
    const std::size_t end = first + buckets[bucket].bytes / sizeof(float);
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      const Range part{std::max(first, shares[rank].begin), std::min(end, shares[rank].end)};
      if (part.begin < part.end) pieces.push_back({bucket, static_cast<int>(rank), part});
    }
  }
  return pieces;
}

void add_floats(const float* more, float* sums, std::size_t count, int threads) {
  parallel_for(
      threads, count,
      [&](Range part) {
        const DenormalScope flushing(true);
        add_numbers(more + part.begin, sums + part.begin, part.size());
      },
      floats_a_line);
}

// ---- on a worker ----------------------------------------------------------------------------------------------------

GradientPushes::GradientPushes(Communicator communicator, std::vector<GradientSlot> slots,
                               std::span<const FusionBuffer::Bucket> buckets, const std::vector<PushedPiece>& pieces,
                               const Buffer& arena)
    : slots_(std::move(slots)), bucket_of_slot_(slots_.size()), marked_(slots_.size()), missing_(buckets.size()) {
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    slots_of_bucket_.push_back(buckets[bucket].end_slot - buckets[bucket].first_slot);
    for (std::size_t slot = buckets[bucket].first_slot; slot < buckets[bucket].end_slot; ++slot)
      bucket_of_slot_[slot] = bucket;
  }
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const std::size_t id = index_of(slots_[slot].id);
    if (id >= slot_of_id_.size()) slot_of_id_.resize(id + 1, no_place);
    slot_of_id_[id] = slot;
  }
  for (const PushedPiece& piece : pieces) {
    pushes_.push_back(
        {.bucket = piece.bucket,
         .send = communicator.plan(SendSpec{slice_of(arena, piece.elements), piece.server, label_of(piece)})});
    bytes_ += piece.elements.size() * sizeof(float);
  }
}

void GradientPushes::begin() {
  std::ranges::fill(marked_, char{0});
  missing_ = slots_of_bucket_;
  full_ = started_ = oldest_ = 0;
}

void GradientPushes::mark_ready(ParameterId id, Stream& stream) {
  const std::size_t slot = index_of(id) < slot_of_id_.size() ? slot_of_id_[index_of(id)] : no_place;
  if (slot == no_place)
    throw LogicError("parameter " + std::to_string(index_of(id)) + " has no gradient that is pushed to servers");
  if (marked_[slot]) throw LogicError("the gradient of " + slots_[slot].name + " was marked ready twice in a step");
  marked_[slot] = 1;
  --missing_[bucket_of_slot_[slot]];
  start_full_buckets(stream);
  while (oldest_ < started_ && pushes_[oldest_].sent.ready()) ++oldest_;
}

/// In the order of buckets: a server receives in it.
void GradientPushes::start_full_buckets(Stream& stream) {
  while (full_ < missing_.size() && missing_[full_] == 0) ++full_;
  for (; started_ < pushes_.size() && pushes_[started_].bucket < full_; ++started_)
    pushes_[started_].sent = pushes_[started_].send->start(stream.record());
}

void GradientPushes::finish(Stream& stream) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot)
    if (!marked_[slot])
      throw LogicError("the gradient of " + slots_[slot].name + " was never marked ready in this step");
  start_full_buckets(stream);
}

void GradientPushes::start_all(Stream& stream) {
  std::ranges::fill(missing_, std::size_t{0});
  start_full_buckets(stream);
}

void GradientPushes::wait(Stream& stream) {
  for (; oldest_ < started_; ++oldest_) stream.wait(pushes_[oldest_].sent);
}

// ---- on a server ----------------------------------------------------------------------------------------------------

GradientArrivals::GradientArrivals(Communicator communicator, const KeyValueRoles& roles,
                                   const std::vector<PushedPiece>& pieces, Range share, const Buffer& arena)
    : memory_(Buffer::host(static_cast<std::size_t>(roles.workers() - 1) * share.size() * sizeof(float))),
      first_(reinterpret_cast<float*>(arena.data()) + share.begin),
      count_(share.size()) {
  for (int worker = 0; worker < roles.workers(); ++worker) {
    float* place = first_;
    if (worker > 0) {
      place = reinterpret_cast<float*>(memory_.data()) + static_cast<std::size_t>(worker - 1) * count_;
      others_.push_back(place);
    }
    for (const PushedPiece& piece : pieces) {
      if (piece.server != communicator.rank()) continue;
      const Tensor tensor(std::span(place + (piece.elements.begin - share.begin), piece.elements.size()));
      receives_.push_back(communicator.plan(ReceiveSpec{tensor, worker, label_of(piece)}));
      bytes_ += piece.elements.size() * sizeof(float);
    }
  }
  received_.resize(receives_.size());
}

void GradientArrivals::start(Stream& stream) {
  for (std::size_t i = 0; i < receives_.size(); ++i) received_[i] = receives_[i]->start(stream.record());
}

void GradientArrivals::wait(Stream& stream) {
  for (const Event& event : received_) stream.wait(event);
}

void GradientArrivals::add_up(Stream& stream) {
  for (const float* more : others_) add_floats(more, first_, count_, stream.threads());
}

}  // namespace ronda
