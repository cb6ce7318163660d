#include <ronda/collectives/host/algorithms/allreduce/doubling.hpp>
#include <ronda/collectives/host/algorithms/allreduce_row.hpp>

#include <bit>

namespace ronda {
namespace {

/// How often a member packs what it has: once a step, and once for whom it is folded with.
std::size_t packings(const Folding& folding) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(folding.power())));
}

}  // namespace

RecursiveDoubling::RecursiveDoubling(std::unique_ptr<Transport> transport, Elements data, const Reduction& reduction,
                                     const Wire& wire)
    : transport_(std::move(transport)),
      data_(data),
      reduction_(reduction),
      folding_(transport_->rank(), transport_->size()),
      packing_(data, wire, packings(folding_)) {}

Task RecursiveDoubling::run() {
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
  std::size_t step = 0;
  for (int bit = 1; bit < folding_.power(); bit *= 2, ++step) {
    const int partner = folding_.rank_of(folding_.member() ^ bit);
    const int lowest = folding_.rank_of(folding_.member() & ~(bit - 1));  // of those that have the same by now
    incoming_ = transport_->receive(partner, packing_.room(all));
    outgoing_ = transport_->send(partner, packing_.pack(all, step, lowest));
    co_await incoming_;
    co_await outgoing_;
    packing_.combine(reduction_.op, all);
  }
  if (folding_.power() > 1) unify_nans(data_);
  divide_if_mean(reduction_, data_);
  if (folding_.anybody()) {  // also those that have nobody to send it to keep what is sent
    const std::span result = packing_.pack(all, step, 0);
    if (folding_.is_folded()) outgoing_ = transport_->send(folding_.neighbour(), result);
    co_await outgoing_;
  }
}

// ---- the row --------------------------------------------------------------------------------------------------------

namespace {

std::optional<double> doubling_seconds(const MessageTimes& times, double bytes, const MessageTimes::Packed& packed) {
  std::optional<double> total = times.folded(bytes, packed);
  const Folding folding(0, times.ranks());
  for (int distance = 1; total && distance < folding.power(); distance *= 2) {
    const MessageTimes::Way step = times.way_of_exchange(distance);
    if (!times.known(step)) return std::nullopt;
    *total += times.exchange(step, bytes, packed) + times.combining(bytes);
  }
  return total;
}

std::unique_ptr<Algorithm> make_doubling(const AllreduceParts& parts) {
  return std::make_unique<RecursiveDoubling>(parts.across_all(), parts.elements, parts.reduction, parts.wire);
}

}  // namespace

extern const AllreduceRow doubling_row;
constinit const AllreduceRow doubling_row{.algorithm = AllreduceAlgorithm::doubling,
                                          .name = "doubling",
                                          .help = "recursive doubling over messages: for the shortest; 1 GiB at most",
                                          .roundings = Folding::roundings,
                                          .refusal = refuse_more_than_one_message,
                                          .suits = always,
                                          .cost = doubling_seconds,
                                          .make = make_doubling};

}  // namespace ronda
