#include <ronda/collectives/host/algorithms/recursive_halving.hpp>

#include <algorithm>

namespace ronda {

RecursiveHalving::RecursiveHalving(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                                   const Wire& wire)
    : transport_(std::move(transport)),
      data_(data),
      reduction_(reduction),
      folding_(transport_->rank(), transport_->size()),
      packing_(data, wire) {}

Task RecursiveHalving::run() {
  const Range all{0, data_.count};
  packing_.begin_run();
  if (folding_.hands_over()) {
    outgoing_ = transport_->send(folding_.neighbour(), packing_.pack(all, 0, transport_->rank()));
    co_await outgoing_;
    incoming_ = transport_->receive(folding_.neighbour(), packing_.image(all));
    co_await incoming_;
    packing_.unpack(all);
    co_return;
  }
  if (folding_.is_folded()) {
    incoming_ = transport_->receive(folding_.neighbour(), packing_.room(all));
    co_await incoming_;
    packing_.combine(reduction_.op, all);
  }

  Range kept = all;
  std::size_t step = 0;
  for (int distance = folding_.power() / 2; distance > 0; distance /= 2, ++step) {
    const std::size_t middle = kept.begin + kept.size() / 2 / packing_.granule() * packing_.granule();
    const Range lower{kept.begin, middle}, upper{middle, kept.end};
    const bool keeps_upper = (folding_.member() & distance) != 0;
    kept = keeps_upper ? upper : lower;
    given_[step] = keeps_upper ? lower : upper;
    const int partner = folding_.rank_of(folding_.member() ^ distance);
    incoming_ = transport_->receive(partner, packing_.room(kept));
    outgoing_ = transport_->send(partner, packing_.pack(given_[step], 0, transport_->rank()));
    co_await incoming_;
    co_await outgoing_;
    packing_.combine(reduction_.op, kept);
  }
  finish(reduction_, data_.part(kept));
  packing_.pack(kept, 0, transport_->rank());

  for (int distance = 1; distance < folding_.power(); distance *= 2) {
    const Range given = given_[--step];
    const int partner = folding_.rank_of(folding_.member() ^ distance);
    incoming_ = transport_->receive(partner, packing_.image(given));
    outgoing_ = transport_->send(partner, packing_.image(kept));
    co_await incoming_;
    co_await outgoing_;
    kept = {std::min(kept.begin, given.begin), std::max(kept.end, given.end)};
  }
  if (folding_.is_folded()) {
    outgoing_ = transport_->send(folding_.neighbour(), packing_.image(all));
    co_await outgoing_;
  }
  packing_.unpack(all);
}

}  // namespace ronda
