#include <ronda/collectives/algorithms/recursive_doubling.hpp>

namespace ronda {

RecursiveDoubling::RecursiveDoubling(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction)
    : transport_(std::move(transport)),
      data_(data),
      reduction_(reduction),
      folding_(transport_->rank(), transport_->size()),
      scratch_(Buffer::host(data.bytes().size())) {}

Task RecursiveDoubling::run() {
  const std::span received(scratch_.data(), data_.bytes().size());
  if (folding_.hands_over()) {
    outgoing_ = transport_->send(folding_.neighbour(), data_.bytes());
    co_await outgoing_;
    incoming_ = transport_->receive(folding_.neighbour(), data_.bytes());
    co_await incoming_;
    co_return;
  }
  if (folding_.is_folded()) {
    incoming_ = transport_->receive(folding_.neighbour(), received);
    co_await incoming_;
    combine(reduction_.op, data_, received.data());
  }
  for (int bit = 1; bit < folding_.power(); bit *= 2) {
    const int partner = folding_.rank_of(folding_.member() ^ bit);
    incoming_ = transport_->receive(partner, received);
    outgoing_ = transport_->send(partner, data_.bytes());
    co_await incoming_;
    co_await outgoing_;
    combine(reduction_.op, data_, received.data());
  }
  finish(reduction_, data_);
  if (folding_.is_folded()) {
    outgoing_ = transport_->send(folding_.neighbour(), data_.bytes());
    co_await outgoing_;
  }
}

}  // namespace ronda
