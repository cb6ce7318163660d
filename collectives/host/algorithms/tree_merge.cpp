#include <ronda/collectives/host/algorithms/tree_merge.hpp>

#include <utility>

namespace ronda {

TreeMerge::TreeMerge(std::unique_ptr<Transport> transport, std::span<std::byte> block, Merge merge)
    : transport_(std::move(transport)),
      block_(block),
      merge_(std::move(merge)),
      scratch_(Buffer::host(transport_->size() > 1 ? block.size() : 0)) {}

Task TreeMerge::run() {
  const int rank = transport_->rank(), size = transport_->size();
  int lowest = 1;  // the bit of the branch that leads to the parent; beyond all at rank 0
  while (lowest < size && (rank & lowest) == 0) lowest *= 2;

  for (int bit = 1; bit < lowest && rank + bit < size; bit *= 2) {
    const std::span<std::byte> from_below(scratch_.data(), block_.size());
    request_ = transport_->receive(rank + bit, from_below);
    co_await request_;
    merge_(block_, from_below);
  }
  if (rank != 0) {
    request_ = transport_->send(rank - lowest, block_);
    co_await request_;
    request_ = transport_->receive(rank - lowest, block_);
    co_await request_;
  }
  std::size_t children = 0;
  for (int bit = lowest / 2; bit > 0; bit /= 2)
    if (rank + bit < size) outgoing_[children++] = transport_->send(rank + bit, block_);
  for (std::size_t child = 0; child < children; ++child) {
    Request& outgoing = outgoing_[child];
    co_await outgoing;
  }
}

}  // namespace ronda
