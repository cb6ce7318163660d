#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/parameter_server/gradient_pushes.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace ronda {

// ---- on a worker ----------------------------------------------------------------------------------------------------

GradientPushes::GradientPushes(Communicator communicator, int worker, std::vector<GradientSlot> slots,
                               std::span<const FusionBuffer::Bucket> buckets, const std::vector<PushedPiece>& pieces,
                               const Buffer& arena, const FusionOptions& options)
    : ready_(std::move(slots), buckets), packed_(options, worker, pieces, arena) {
  std::vector<int> servers;                     // by lane
  std::vector<std::vector<std::size_t>> lanes;  // numbers of pieces
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto lane = static_cast<std::size_t>(std::ranges::find(servers, pieces[i].server) - servers.begin());
    if (lane == servers.size()) {
      servers.push_back(pieces[i].server);
      lanes.emplace_back();
    }
    lanes[lane].push_back(i);
    pieces_.push_back({pieces[i].bucket, lane});
  }
  std::vector<std::size_t> counts;
  for (const auto& lane : lanes) counts.push_back(lane.size());
  released_.resize(lanes.size());
  sends_ = std::make_unique<MessageWindow>(communicator, counts,
                                           [this, communicator, servers = std::move(servers), lanes = std::move(lanes)](
                                               std::size_t lane, std::size_t number) mutable {
                                             const std::size_t piece = lanes[lane][number];
                                             return communicator.plan(SendSpec{packed_.message(piece), servers[lane],
                                                                               label_of_bucket(pieces_[piece].bucket)});
                                           });
}

void GradientPushes::begin() {
  ready_.begin();
  packed_.begin_push();
  next_ = 0;
}

void GradientPushes::mark_ready(ParameterId id, Stream& stream) {
  ready_.mark(id);
  release_full_buckets(stream);
}

void GradientPushes::release_full_buckets(Stream& stream) {
  for (; next_ < pieces_.size() && pieces_[next_].bucket < ready_.full(); ++next_) {
    packed_.pack(next_, stream.threads());
    release_next(stream);
  }
  static_cast<void>(move_on());
}

void GradientPushes::release_next(Stream& stream) {
  if (next_ == 0) {
    std::ranges::fill(released_, 0);
    sends_->start(stream, 0);
  }
  const std::size_t lane = pieces_[next_].lane;
  sends_->release(lane, ++released_[lane], stream);
}

void GradientPushes::finish(Stream& stream) {
  ready_.require_all();
  release_full_buckets(stream);
}

void GradientPushes::start_all(Stream& stream) {
  ready_.mark_all();
  for (; next_ < pieces_.size(); ++next_) release_next(stream);
}

// ---- on a server ----------------------------------------------------------------------------------------------------

GradientArrivals::GradientArrivals(Communicator communicator, const Roles& roles,
                                   const std::vector<PushedPiece>& pieces, Range share, const Buffer& arena,
                                   const FusionOptions& options)
    : pieces_(options.compression, pieces, communicator.rank(), share),
      memory_(Buffer::host(static_cast<std::size_t>(roles.workers() - (pieces_.packed() ? 0 : 1)) * pieces_.memory())),
      first_(reinterpret_cast<float*>(arena.data()) + share.begin) {
  std::byte* next = memory_.data();
  for (int worker = 0; worker < roles.workers(); ++worker) {
    const bool in_arena = worker == 0 && !pieces_.packed();
    pushes_.push_back(in_arena ? reinterpret_cast<std::byte*>(first_) : std::exchange(next, next + pieces_.memory()));
    if (!in_arena && !pieces_.packed()) others_.push_back(reinterpret_cast<const float*>(pushes_.back()));
    bytes_ += pieces_.bytes();
  }
  auto receive = [this, communicator, roles](std::size_t worker, std::size_t piece) mutable {
    return communicator.plan(ReceiveSpec{pieces_.message(piece, pushes_[worker]),
                                         roles.rank_of_worker(static_cast<int>(worker)),
                                         label_of_bucket(pieces_.pieces()[piece].bucket)});
  };
  receives_ = std::make_unique<MessageWindow>(
      communicator, std::vector<std::size_t>(pushes_.size(), pieces_.pieces().size()), std::move(receive));
}

void GradientArrivals::start(Stream& stream) {
  ++runs_;
  receives_->start(stream);
}

/// Each worker keeps what it lost itself; how many pushes there were all ranks know, so that any may write it down.
void GradientArrivals::visit(StateVisitor& visitor) {
  if (keeps_lost(pieces_.compression())) visitor.visit({"pushes.runs", Tensor(std::span(&runs_, 1)), Scope::per_rank});
}

std::span<const float* const> GradientArrivals::take(std::size_t piece, Stream& stream) {
  if (pieces_.packed()) pieces_.sum_piece(piece, pushes_, first_, stream.threads());
  others_of_piece_.clear();
  const std::size_t offset = pieces()[piece].elements.begin - pieces_.share().begin;
  for (const float* share : others_) others_of_piece_.push_back(share + offset);
  return others_of_piece_;
}

std::span<const float* const> GradientArrivals::take_all(Stream& stream) {
  if (pieces_.packed()) pieces_.sum(pushes_, first_, stream.threads());
  return others_;
}

void GradientArrivals::add_up(Stream& stream) {
  if (!pieces_.packed()) pieces_.sum(pushes_, first_, stream.threads());
}

}  // namespace ronda
