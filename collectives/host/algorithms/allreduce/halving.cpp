#include <ronda/collectives/host/algorithms/allreduce/halving.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>

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
  divide_if_mean(reduction_, data_.part(kept));
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

// ---- the row --------------------------------------------------------------------------------------------------------

namespace {

std::optional<double> halving_seconds(const MessageTimes& times, double bytes, const MessageTimes::Packed& packed) {
  std::optional<double> total = times.folded(bytes, packed);
  const Folding folding(0, times.ranks());
  double part = bytes / 2;
  for (int distance = folding.power() / 2; total && distance > 0; distance /= 2, part /= 2) {
    const MessageTimes::Way step = times.way_of_exchange(distance);
    if (!times.known(step)) return std::nullopt;
    *total += 2 * times.exchange(step, part, packed) + times.combining(part);
  }
  return total;
}

std::unique_ptr<Algorithm> make_halving(const AllreduceParts& parts) {
  return std::make_unique<RecursiveHalving>(parts.across_all(), parts.elements, parts.reduction, parts.wire);
}

}  // namespace

extern const AllreduceRow halving_row;
constinit const AllreduceRow halving_row{
    .algorithm = AllreduceAlgorithm::halving,
    .name = "halving",
    .help = "recursive halving and doubling (Rabenseifner's), over messages; 1 GiB at most",
    .roundings = Folding::roundings,
    .refusal = refuse_more_than_one_message,
    .suits = always,
    .cost = halving_seconds,
    .make = make_halving};

}  // namespace ronda
