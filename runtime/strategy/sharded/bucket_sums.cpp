#include <ronda/collectives/host/node/touch_pages.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/core/floats.hpp>
#include <ronda/runtime/strategy/sharded/bucket_sums.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ronda {
namespace {

constexpr std::size_t floats_cut_at = 16;
constexpr std::size_t summed_at_once = 2048;  ///< floats whose sums stay in a first-level cache

}  // namespace

// ---- in a node's memory ---------------------------------------------------------------------------------------------

NodeBucketSums::NodeBucketSums(const Communicator& communicator, const GradientRing& ring,
                               std::vector<const float*> rings, std::span<float* const> sums, std::size_t count,
                               int threads)
    : rings_(std::move(rings)), meeting_(communicator, "a bucket of gradients"), threads_(threads) {
  const auto me = static_cast<std::size_t>(communicator.rank()), ranks = rings_.size();
  for (const FusionBuffer::Bucket& bucket : ring.buckets) {
    const Range all = elements_of(bucket);
    const Range lines = part_of((all.size() + floats_cut_at - 1) / floats_cut_at, me, ranks);
    add_pieces(all.begin + lines.begin * floats_cut_at, std::min(all.begin + lines.end * floats_cut_at, all.end),
               ring.memory, sums, count);
    ends_.push_back(pieces_.size());
  }
  for (const Piece& piece : pieces_) {
    for (const float* memory : rings_) touch_pages(std::as_bytes(std::span(memory + piece.place, piece.count)));
    touch_pages(std::as_bytes(std::span(piece.sums, piece.count)));
  }
}

/// Elements `first` to `end` of the arena, cut where another rank's share begins, and where their memory has an end.
void NodeBucketSums::add_pieces(std::size_t first, std::size_t end, const Repetition& memory,
                                std::span<float* const> sums, std::size_t count) {
  const std::size_t period = memory.period / sizeof(float), repeated = memory.repeated / sizeof(float);
  for (std::size_t rank = 0; rank < sums.size(); ++rank) {
    const Range share = share_of_rank(count, rank, sums.size()), mine = overlap_of(share, {first, end});
    for (std::size_t at = mine.begin; at < mine.end;) {
      const std::size_t here = at < repeated ? std::min(repeated - at, period - at % period) : mine.end - at;
      const std::size_t length = std::min(here, mine.end - at);
      pieces_.push_back({memory.place(at * sizeof(float)) / sizeof(float), sums[rank] + (at - share.begin), length});
      at += length;
    }
  }
}

/// Where sums are added to, the other ranks are to have read this one's last buckets before it overwrites them; else
/// they have, since a step has ended.
void NodeBucketSums::begin(bool adds) {
  if (adds) static_cast<void>(meeting_.meet());
  adds_ = adds;
  started_ = summed_ = by_all_ = 0;
}

void NodeBucketSums::start(Stream& /*stream*/) {
  sum_up_to(started_);
  came_ = meeting_.come();
  ++started_;
}

void NodeBucketSums::wait_until_summed(std::size_t buckets) {
  if (buckets <= by_all_) return;
  came_.wait();
  by_all_ = started_ - 1;  // who comes to the meeting of a bucket has summed those before
}

void NodeBucketSums::sum_up_to(std::size_t buckets) {
  if (summed_ == buckets) return;
  wait_until_summed(buckets);
  for (; summed_ < buckets; ++summed_)
    for (std::size_t i = summed_ > 0 ? ends_[summed_ - 1] : 0; i < ends_[summed_]; ++i) sum(pieces_[i]);
}

void NodeBucketSums::sum(const Piece& piece) const {
  parallel_for(
      threads_, piece.count,
      [&](Range part) {
        const DenormalScope flushing(true);
        for (std::size_t at = part.begin; at < part.end; at += summed_at_once) {
          const std::size_t length = std::min(summed_at_once, part.end - at);
          float* const sums = piece.sums + at;
          if (!adds_) std::copy_n(rings_[0] + piece.place + at, length, sums);
          for (std::size_t rank = adds_ ? 0 : 1; rank < rings_.size(); ++rank)
            add_floats(rings_[rank] + piece.place + at, sums, length);
        }
      },
      floats_cut_at);
}

// ---- by messages ----------------------------------------------------------------------------------------------------

MessageBucketSums::MessageBucketSums(Communicator communicator, const GradientRing& ring, float* gradients,
                                     std::span<float> sums, std::size_t count, int threads)
    : threads_(threads) {
  const auto ranks = static_cast<std::size_t>(communicator.size()), me = static_cast<std::size_t>(communicator.rank());
  const std::vector<Range> shares = shares_of_ranks(count, ranks);
  const auto tensor_of = [&](const Range& elements) {
    return Tensor(std::span(gradients + elements.begin, elements.size()));
  };
  for (const FusionBuffer::Bucket& bucket : ring.buckets) {
    const Range all = elements_of(bucket), mine = overlap_of(shares[me], all);
    const auto part = [&](std::size_t rank) {
      const Range inner = part_of(all.size(), rank, ranks);
      return Range{all.begin + inner.begin, all.begin + inner.end};
    };
    std::vector<std::size_t> parts, to, from;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      parts.push_back(part(rank).size());
      to.push_back(overlap_of(part(me), shares[rank]).size());
      from.push_back(overlap_of(part(rank), shares[me]).size());
    }
    const std::string label = label_of_bucket(buckets_.size());
    auto scatter = communicator.plan(
        ReduceScatterSpec{.all = tensor_of(all), .counts = parts, .label = label, .flush_denormals = true});
    auto deliver = communicator.plan(AlltoallSpec{.outgoing = tensor_of(part(me)),
                                                  .incoming = tensor_of(mine),
                                                  .outgoing_counts = to,
                                                  .incoming_counts = from,
                                                  .label = label + ", its sums"});
    buckets_.push_back({bucket.bytes,
                        std::move(scatter),
                        std::move(deliver),
                        {gradients + mine.begin, mine.size()},
                        mine.size() > 0 ? sums.data() + (mine.begin - shares[me].begin) : nullptr});
  }
}

void MessageBucketSums::begin(bool adds) {
  adds_ = adds;
  started_ = delivering_ = summed_ = 0;
}

void MessageBucketSums::start(Stream& stream) {
  deliver_up_to(started_);
  buckets_[started_].scattered = buckets_[started_].scatter->start(stream.record());
  ++started_;
}

/// All ranks start the same collectives in the same order: a delivery when the bucket behind is complete, or all are.
void MessageBucketSums::deliver_up_to(std::size_t buckets) {
  for (; delivering_ < buckets; ++delivering_) {
    Bucket& bucket = buckets_[delivering_];
    bucket.scattered.wait();
    bucket.delivered = bucket.deliver->start();
  }
}

void MessageBucketSums::wait_until_summed(std::size_t buckets) {
  for (; summed_ < buckets; ++summed_) {
    const Bucket& bucket = buckets_[summed_];
    bucket.delivered.wait();
    if (adds_)
      add_floats(bucket.mine.data(), bucket.sums, bucket.mine.size(), threads_);
    else
      std::ranges::copy(bucket.mine, bucket.sums);
  }
}

void MessageBucketSums::finish() {
  deliver_up_to(started_);
  wait_until_summed(started_);
}

void MessageBucketSums::poll() {
  if (delivering_ < started_) static_cast<void>(buckets_[delivering_].scattered.ready());
}

std::vector<std::string> MessageBucketSums::report() const {
  std::vector<std::string> lines;
  for (const Bucket& bucket : buckets_) {
    const CollectiveTimes sum = bucket.scatter->times(), deliver = bucket.deliver->times();
    if (sum.runs > 0)
      lines.push_back(label_of_bucket(lines.size()) + ": " + std::to_string(bucket.bytes) + " bytes by ring took " +
                      std::to_string(std::llround((sum.total + deliver.total) / static_cast<double>(sum.runs) * 1e6)) +
                      " us in the mean");
  }
  return lines;
}

std::size_t MessageBucketSums::memory() const noexcept {
  std::size_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += bucket.scatter->memory() + bucket.deliver->memory();
  return bytes;
}

}  // namespace ronda
