#include <ronda/core/add_floats.hpp>
#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/gradient_pushes.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

std::string label_of(const PushedPiece& piece) { return "bucket " + std::to_string(piece.bucket); }

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

// ---- on a worker ----------------------------------------------------------------------------------------------------

GradientPushes::GradientPushes(Communicator communicator, std::vector<GradientSlot> slots,
                               std::span<const FusionBuffer::Bucket> buckets, const std::vector<PushedPiece>& pieces,
                               const Buffer& arena)
    : ready_(std::move(slots), buckets) {
  for (const PushedPiece& piece : pieces) {
    pushes_.push_back(
        {.bucket = piece.bucket,
         .send = communicator.plan(SendSpec{floats_in(arena, piece.elements), piece.server, label_of(piece)})});
    bytes_ += piece.elements.size() * sizeof(float);
  }
}

void GradientPushes::begin() {
  ready_.begin();
  started_ = oldest_ = 0;
}

void GradientPushes::mark_ready(ParameterId id, Stream& stream) {
  ready_.mark(id);
  start_full_buckets(stream);
  while (oldest_ < started_ && pushes_[oldest_].sent.ready()) ++oldest_;
}

/// In the order of buckets: a server receives in it.
void GradientPushes::start_full_buckets(Stream& stream) {
  for (; started_ < pushes_.size() && pushes_[started_].bucket < ready_.full(); ++started_)
    pushes_[started_].sent = pushes_[started_].send->start(stream.record());
}

void GradientPushes::finish(Stream& stream) {
  ready_.require_all();
  start_full_buckets(stream);
}

void GradientPushes::start_all(Stream& stream) {
  ready_.mark_all();
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
