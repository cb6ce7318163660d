#include <ronda/collectives/host/transport/threads.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <cstring>

namespace ronda {

struct ThreadNetwork::Posted {
  Handle handle;
  bool sending;
  int from, to;
  std::span<std::byte> message;
  bool done = false, fits = true;
};

class ThreadNetwork::End final : public Transport {
 public:
  End(ThreadNetwork& network, int rank, int size) : network_(network), rank_(rank), size_(size) {}
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override {
    return {*this, {network_.post(true, rank_, to, {const_cast<std::byte*>(message.data()), message.size()})}, to};
  }
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override {
    return {*this, {network_.post(false, from, rank_, message), message.size()}, from};
  }
  [[nodiscard]] Open open() noexcept override { return {}; }  // what is abandoned is gone
  void take_back() noexcept override {}

 private:
  bool test(Handle& handle) override { return network_.take_if_done(handle.id); }
  void abandon(Handle handle) noexcept override {
    std::lock_guard lock(network_.mutex_);
    std::erase_if(network_.posted_, [&](const Posted& posted) { return posted.handle == handle.id; });
  }

  ThreadNetwork& network_;
  int rank_, size_;
};

ThreadNetwork::ThreadNetwork(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(*this, rank, ranks));
}

ThreadNetwork::~ThreadNetwork() = default;

ThreadNetwork::Handle ThreadNetwork::post(bool sending, int from, int to, std::span<std::byte> message) {
  std::lock_guard lock(mutex_);
  Posted mine{next_++, sending, from, to, message};
  const auto other = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& posted) {
    return !posted.done && posted.sending != sending && posted.from == from && posted.to == to;
  });
  if (other != posted_.end()) {
    mine.fits = other->fits = message.size() == other->message.size();
    const auto& source = sending ? mine : *other;
    const auto& target = sending ? *other : mine;
    if (mine.fits && !message.empty()) std::memcpy(target.message.data(), source.message.data(), message.size());
    mine.done = other->done = true;
  }
  posted_.push_back(mine);
  return mine.handle;
}

bool ThreadNetwork::take_if_done(Handle handle) {
  std::lock_guard lock(mutex_);
  const auto mine = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& p) { return p.handle == handle; });
  if (!mine->done) return false;
  const bool fits = mine->fits;
  posted_.erase(mine);
  if (!fits) throw CommunicationError("a message was received with another length than it was sent with");
  return true;
}

}  // namespace ronda
