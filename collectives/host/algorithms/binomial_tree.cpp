#include <ronda/collectives/host/algorithms/binomial_tree.hpp>

namespace ronda {

BinomialTree::BinomialTree(std::unique_ptr<Transport> transport, Elements data, int root, Direction direction,
                           const Reduction& reduction)
    : transport_(std::move(transport)),
      data_(data),
      root_(root),
      number_((transport_->rank() - root + transport_->size()) % transport_->size()),
      direction_(direction),
      reduction_(reduction),
      scratch_(Buffer::host(direction == Direction::reduce ? data.bytes().size() : 0)) {}

Task BinomialTree::run() {
  const int size = transport_->size();
  int lowest = 1;  // the bit of the branch that leads to the parent; beyond all at the root
  while (lowest < size && (number_ & lowest) == 0) lowest *= 2;
  const bool is_root = number_ == 0;

  if (direction_ == Direction::broadcast) {
    if (!is_root) {
      incoming_ = transport_->receive(rank_of(number_ - lowest), data_.bytes());
      co_await incoming_;
    }
    std::size_t children = 0;
    for (int bit = lowest / 2; bit > 0; bit /= 2)
      if (number_ + bit < size) outgoing_[children++] = transport_->send(rank_of(number_ + bit), data_.bytes());
    for (std::size_t child = 0; child < children; ++child) {
      Request& outgoing = outgoing_[child];
      co_await outgoing;
    }
    co_return;
  }

  for (int bit = 1; bit < lowest && number_ + bit < size; bit *= 2) {
    incoming_ = transport_->receive(rank_of(number_ + bit), {scratch_.data(), data_.bytes().size()});
    co_await incoming_;
    combine(reduction_.op, data_, scratch_.data());
  }
  if (is_root) {
    divide_if_mean(reduction_, data_);
  } else {
    Request& outgoing = outgoing_[0] = transport_->send(rank_of(number_ - lowest), data_.bytes());
    co_await outgoing;
  }
}

}  // namespace ronda
