#include <ronda/core/add_floats.hpp>
#include <ronda/runtime/strategy/exchange/gradient_pushes.hpp>

#include <cstddef>
#include <utility>

namespace ronda {

// ---- on a worker ----------------------------------------------------------------------------------------------------

GradientPushes::GradientPushes(Communicator communicator, int worker, std::vector<GradientSlot> slots,
                               std::span<const FusionBuffer::Bucket> buckets, const std::vector<PushedPiece>& pieces,
                               const Buffer& arena, const FusionOptions& options)
    : ready_(std::move(slots), buckets), packed_(options, worker, pieces, arena) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pushes_.push_back({.bucket = pieces[i].bucket,
                       .send = communicator.plan(SendSpec{packed_.message(i), pieces[i].server, label_of(pieces[i])})});
}

void GradientPushes::begin() {
  ready_.begin();
  packed_.begin_push();
  started_ = oldest_ = 0;
}

void GradientPushes::mark_ready(ParameterId id, Stream& stream) {
  ready_.mark(id);
  start_full_buckets(stream);
  while (oldest_ < started_ && pushes_[oldest_].sent.ready()) ++oldest_;
}

/// In the order of buckets: a server receives in it.
void GradientPushes::start_full_buckets(Stream& stream) {
  for (; started_ < pushes_.size() && pushes_[started_].bucket < ready_.full(); ++started_) {
    packed_.pack(started_, stream.threads());
    start_next(stream);
  }
}

void GradientPushes::finish(Stream& stream) {
  ready_.require_all();
  start_full_buckets(stream);
}

void GradientPushes::start_all(Stream& stream) {
  ready_.mark_all();
  for (; started_ < pushes_.size(); ++started_) start_next(stream);
}

void GradientPushes::wait(Stream& stream) {
  for (; oldest_ < started_; ++oldest_) stream.wait(pushes_[oldest_].sent);
}

// ---- on a server ----------------------------------------------------------------------------------------------------

GradientArrivals::GradientArrivals(Communicator communicator, const Roles& roles,
                                   const std::vector<PushedPiece>& pieces, Range share, const Buffer& arena,
                                   const FusionOptions& options)
    : pieces_(options.compression, pieces, communicator.rank(), share),
      memory_(Buffer::host(static_cast<std::size_t>(roles.workers() - (pieces_.packed() ? 0 : 1)) * pieces_.memory())),
      first_(reinterpret_cast<float*>(arena.data()) + share.begin),
      count_(share.size()) {
  std::byte* next = memory_.data();
  for (int worker = 0; worker < roles.workers(); ++worker) {
    const bool in_arena = worker == 0 && !pieces_.packed();
    pushes_.push_back(in_arena ? reinterpret_cast<std::byte*>(first_) : std::exchange(next, next + pieces_.memory()));
    if (!in_arena && !pieces_.packed()) others_.push_back(reinterpret_cast<const float*>(pushes_.back()));
    bytes_ += pieces_.bytes();
  }
  auto receive = [this, communicator, roles](std::size_t number) mutable {
    const std::size_t piece = number / pushes_.size(), worker = number % pushes_.size();
    return communicator.plan(ReceiveSpec{pieces_.message(piece, pushes_[worker]),
                                         roles.rank_of_worker(static_cast<int>(worker)),
                                         label_of(pieces_.pieces()[piece])});
  };
  receives_ =
      std::make_unique<MessageWindow>(communicator, pieces_.pieces().size() * pushes_.size(), std::move(receive));
}

void GradientArrivals::start(Stream& stream) {
  ++runs_;
  receives_->start(stream);
}

/// Each worker keeps what it lost itself; how many pushes there were all ranks know, so that any may write it down.
void GradientArrivals::visit(StateVisitor& visitor) {
  if (keeps_lost(pieces_.compression())) visitor.visit({"pushes.runs", Tensor(std::span(&runs_, 1)), Scope::per_rank});
}

void GradientArrivals::wait(Stream& stream) {
  receives_->wait();
  if (!pieces_.packed()) return;
  for (const std::byte* push : pushes_)
    if (push == pushes_.front())
      pieces_.unpack(push, first_, stream.threads());
    else
      pieces_.unpack_and_add(push, first_, stream.threads());
}

void GradientArrivals::add_up(Stream& stream) {
  for (const float* more : others_) add_floats(more, first_, count_, stream.threads());
}

}  // namespace ronda
