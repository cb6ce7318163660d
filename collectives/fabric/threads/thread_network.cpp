#include <ronda/collectives/fabric/threads/thread_network.hpp>
#include <ronda/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>

namespace ronda {

/// One side of a message. Its transport owns it.
struct ThreadNetwork::Posted {
  bool sending = false;
  int from = 0, to = 0;  ///< in the world
  std::uint32_t channel = 0;
  std::span<std::byte> message;  ///< only read by a send
  bool fits = true;              ///< both sides have the same length; written before `done`
  bool taken_back = false;
  std::atomic<bool> done{false};

  [[nodiscard]] bool belongs_to(const Posted& other) const noexcept {
    return sending != other.sending && from == other.from && channel == other.channel;
  }
  /// Of the two sides of one message.
  void meet(Posted& other) noexcept {
    const Posted& source = sending ? *this : other;
    const Posted& target = sending ? other : *this;
    fits = other.fits = source.message.size() == target.message.size();
    if (fits && !source.message.empty())
      std::memcpy(target.message.data(), source.message.data(), source.message.size());
    done.store(true, std::memory_order_release);
    other.done.store(true, std::memory_order_release);
  }
};

/// Of messages to one rank: sides that wait for the other one, in order of posting.
struct ThreadNetwork::Mailbox {
  std::mutex door;
  std::vector<Posted*> waiting;
};

/// A handle is the address of the posted side.
class ThreadNetwork::End final : public FabricTransport {
 public:
  End(ThreadNetwork& network, int self, Ranks ranks, FabricChannel channel)
      : network_(network),
        self_(self),
        ranks_(std::move(ranks)),
        channel_(std::move(channel)),
        rank_(static_cast<int>(std::ranges::find(*ranks_, self) - ranks_->begin())) {}
  ~End() override {
    for (const auto& posted : in_flight_) network_.withdraw(*posted);
  }

  void use(FabricChannel channel) noexcept override {
    channel_ = std::move(channel);
    received_ = 0;
  }
  [[nodiscard]] std::size_t received() const noexcept override { return received_; }
  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int size() const noexcept override { return static_cast<int>(ranks_->size()); }
  [[nodiscard]] int global_rank(int rank) const noexcept override { return (*ranks_)[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] Request send(int to, std::span<const std::byte> message) override {
    sent_bytes_ += message.size();
    const auto id = post(true, self_, global_rank(to), {const_cast<std::byte*>(message.data()), message.size()});
    return {*this, {id}, to};
  }
  [[nodiscard]] Request receive(int from, std::span<std::byte> message) override {
    return {*this, {post(false, global_rank(from), self_, message), message.size()}, from};
  }
  [[nodiscard]] Open open() noexcept override {
    Open open;
    for (const auto& posted : in_flight_)
      if (!posted->taken_back && !posted->done.load(std::memory_order_acquire))
        (posted->sending ? open.sends : open.receives) = true;
    return open;
  }
  /// As MPI, which takes no send back; but a send that is abandoned is gone.
  void take_back() noexcept override {
    for (const auto& posted : in_flight_)
      if (!posted->sending && !posted->done.load(std::memory_order_acquire)) {
        network_.withdraw(*posted);
        posted->taken_back = true;
      }
  }
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept override { return sent_bytes_; }

 private:
  std::uint64_t post(bool sending, int from, int to, std::span<std::byte> message) {
    if (idle_.empty()) idle_.push_back(std::make_unique<Posted>());
    Posted& mine = *in_flight_.emplace_back(std::move(idle_.back()));
    idle_.pop_back();
    mine.sending = sending;
    mine.from = from;
    mine.to = to;
    mine.channel = channel_.number();
    mine.message = message;
    mine.taken_back = false;
    mine.done.store(false, std::memory_order_relaxed);
    network_.post(mine);
    return std::bit_cast<std::uintptr_t>(&mine);
  }
  [[nodiscard]] static Posted& posted_of(const Handle& handle) noexcept {
    return *std::bit_cast<Posted*>(static_cast<std::uintptr_t>(handle.id));
  }
  bool test(Handle& handle) override {
    Posted& mine = posted_of(handle);
    if (!mine.done.load(std::memory_order_acquire)) return false;
    const bool fits = mine.fits;
    forget(mine);
    if (!fits) throw CommunicationError("a message was received with another length than it was sent with");
    if (handle.expected) ++received_;
    return true;
  }
  void abandon(Handle handle) noexcept override {
    network_.withdraw(posted_of(handle));
    forget(posted_of(handle));
  }
  void forget(Posted& mine) noexcept {
    const auto found = std::ranges::find(in_flight_, &mine, &std::unique_ptr<Posted>::get);
    idle_.push_back(std::move(*found));
    *found = std::move(in_flight_.back());
    in_flight_.pop_back();
  }

  ThreadNetwork& network_;
  int self_;  ///< in the world
  Ranks ranks_;
  FabricChannel channel_;
  int rank_;
  std::vector<std::unique_ptr<Posted>> in_flight_, idle_;
  std::size_t received_ = 0;
  std::uint64_t sent_bytes_ = 0;
};

ThreadNetwork::ThreadNetwork(int ranks) : mailboxes_(static_cast<std::size_t>(ranks)) {
  std::vector<int> all(mailboxes_.size());
  std::iota(all.begin(), all.end(), 0);
  const auto shared = std::make_shared<const std::vector<int>>(std::move(all));
  for (int rank = 0; rank < ranks; ++rank) ends_.push_back(open(rank, shared, FabricChannel()));
}

ThreadNetwork::~ThreadNetwork() { ends_.clear(); }

std::unique_ptr<FabricTransport> ThreadNetwork::open(int self, Ranks ranks, FabricChannel channel) {
  return std::make_unique<End>(*this, self, std::move(ranks), std::move(channel));
}

void ThreadNetwork::post(Posted& mine) {
  Mailbox& mailbox = mailboxes_[static_cast<std::size_t>(mine.to)];
  const std::lock_guard door(mailbox.door);
  const auto other =
      std::ranges::find_if(mailbox.waiting, [&](const Posted* posted) { return posted->belongs_to(mine); });
  if (other == mailbox.waiting.end()) return mailbox.waiting.push_back(&mine);
  Posted& met = **other;
  mailbox.waiting.erase(other);
  mine.meet(met);
}

void ThreadNetwork::withdraw(Posted& mine) noexcept {
  Mailbox& mailbox = mailboxes_[static_cast<std::size_t>(mine.to)];
  const std::lock_guard door(mailbox.door);
  std::erase(mailbox.waiting, &mine);
}

}  // namespace ronda
