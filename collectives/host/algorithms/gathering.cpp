#include <ronda/collectives/host/algorithms/gathering.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ronda {

Gathering::Gathering(std::unique_ptr<Transport> transport, std::uint64_t place, std::span<const std::byte> mine,
                     std::vector<std::size_t> bytes)
    : transport_(std::move(transport)), place_(place), bytes_(std::move(bytes)) {
  std::size_t end = 0;
  for (std::size_t position = 0; position < bytes_.size(); ++position)
    ends_.push_back(end += bytes_[rank_at(position)]);
  blocks_.resize(end);
  std::ranges::copy(mine, blocks_.begin());
  outbox_.resize(sizeof place_ + end);
  inbox_.resize(sizeof place_ + end);
}

std::size_t Gathering::rank_at(std::size_t position) const noexcept {
  return (static_cast<std::size_t>(transport_->rank()) + position) % bytes_.size();
}

Task Gathering::run() {
  const std::size_t ranks = bytes_.size();
  for (std::size_t have = 1; have < ranks; have *= 2) {
    const std::size_t count = std::min(have, ranks - have);  // blocks
    const std::size_t sent = ends_[count - 1], begin = ends_[have - 1], received = ends_[have + count - 1] - begin;
    std::memcpy(outbox_.data(), &place_, sizeof place_);
    std::copy_n(blocks_.begin(), sent, outbox_.begin() + sizeof place_);
    incoming_ = transport_->receive(static_cast<int>(rank_at(have)), std::span(inbox_).first(sizeof place_ + received));
    outgoing_ =
        transport_->send(static_cast<int>(rank_at(ranks - have)), std::span(outbox_).first(sizeof place_ + sent));
    co_await incoming_;
    if (std::memcmp(inbox_.data(), &place_, sizeof place_) != 0)
      throw CommunicationError("rank " + std::to_string(transport_->global_rank(static_cast<int>(rank_at(have)))) +
                               " is at another place of the program");
    std::copy_n(inbox_.begin() + sizeof place_, received, blocks_.begin() + static_cast<std::ptrdiff_t>(begin));
    co_await outgoing_;
  }
}

void Gathering::copy_to(std::span<std::byte> all) const noexcept {
  std::vector<std::size_t> begins(bytes_.size());
  for (std::size_t rank = 1; rank < begins.size(); ++rank) begins[rank] = begins[rank - 1] + bytes_[rank - 1];
  for (std::size_t position = 0; position < bytes_.size(); ++position) {
    const std::size_t rank = rank_at(position), begin = ends_[position] - bytes_[rank];
    if (bytes_[rank] > 0) std::memcpy(all.data() + begins[rank], blocks_.data() + begin, bytes_[rank]);
  }
}

}  // namespace ronda
