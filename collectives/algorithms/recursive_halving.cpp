#include <ronda/collectives/algorithms/recursive_halving.hpp>

#include <algorithm>

namespace ronda {

RecursiveHalving::RecursiveHalving(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction)
    : transport_(std::move(transport)),
      data_(data),
      reduction_(reduction),
      folding_(transport_->rank(), transport_->size()),
      scratch_(Buffer::host(data.bytes().size())) {}

Task RecursiveHalving::run() {
  if (folding_.hands_over()) {
    outgoing_ = transport_->send(folding_.neighbour(), data_.bytes());
    co_await outgoing_;
    incoming_ = transport_->receive(folding_.neighbour(), data_.bytes());
    co_await incoming_;
    co_return;
  }
  if (folding_.is_folded()) {
    incoming_ = transport_->receive(folding_.neighbour(), {scratch_.data(), data_.bytes().size()});
    co_await incoming_;
    combine(reduction_.op, data_, scratch_.data());
  }

  Range kept{0, data_.count};
  std::size_t step = 0;
  for (int distance = folding_.power() / 2; distance > 0; distance /= 2, ++step) {
    const std::size_t middle = kept.begin + kept.size() / 2;
    const Range lower{kept.begin, middle}, upper{middle, kept.end};
    const bool keeps_upper = (folding_.member() & distance) != 0;
    kept = keeps_upper ? upper : lower;
    given_[step] = keeps_upper ? lower : upper;
    const int partner = folding_.rank_of(folding_.member() ^ distance);
    const Elements mine = data_.part(kept);
    incoming_ = transport_->receive(partner, {scratch_.data(), mine.bytes().size()});
    outgoing_ = transport_->send(partner, data_.part(given_[step]).bytes());
    co_await incoming_;
    co_await outgoing_;
    combine(reduction_.op, mine, scratch_.data());
  }
  finish(reduction_, data_.part(kept));

  for (int distance = 1; distance < folding_.power(); distance *= 2) {
    const Range given = given_[--step];
    const int partner = folding_.rank_of(folding_.member() ^ distance);
    incoming_ = transport_->receive(partner, data_.part(given).bytes());
    outgoing_ = transport_->send(partner, data_.part(kept).bytes());
    co_await incoming_;
    co_await outgoing_;
    kept = {std::min(kept.begin, given.begin), std::max(kept.end, given.end)};
  }
  if (folding_.is_folded()) {
    outgoing_ = transport_->send(folding_.neighbour(), data_.bytes());
    co_await outgoing_;
  }
}

}  // namespace ronda
