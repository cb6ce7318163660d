#include <ronda/runtime/key_value/detail/channel.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// Messages of a pair may be 8192 at a time: see SendSpec. A header and its bytes are two.
constexpr std::size_t most_under_way = 1024;
constexpr std::size_t most_idle = 8;
constexpr std::size_t most_unseen = 256;  ///< messages that `send` adds, at most, until it looks at all again

Tensor tensor_of(std::span<const std::byte> bytes) {
  return {{Shape{static_cast<std::int64_t>(bytes.size())}, DType::uint8, {}}, const_cast<std::byte*>(bytes.data())};
}

Tensor tensor_of(MessageHeader& header) { return tensor_of(std::as_writable_bytes(std::span(&header, 1))); }

}  // namespace

Channel::Channel(const Communicator& communicator, int peer, std::string label)
    : communicator_(communicator),
      peer_(peer),
      label_(std::move(label)),
      header_receive_(communicator_.plan(ReceiveSpec{tensor_of(incoming_), peer_, label_})) {}

std::unique_ptr<Channel::Sending> Channel::take_sending() {
  if (idle_.empty()) return std::make_unique<Sending>();
  auto sending = std::move(idle_.back());
  idle_.pop_back();
  return sending;
}

void Channel::send(const MessageHeader& header, std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
  auto next = take_sending();
  next->header = header;
  next->bytes = bytes;
  next->keeper = std::move(keeper);
  sending_.push_back(std::move(next));
  sent_bytes_ += bytes.size();
  if (sending_.size() >= look_at_)
    static_cast<void>(sending());
  else if (started_ < most_under_way)
    start(*sending_[started_++]);
}

void Channel::start(Sending& next) {
  if (!next.header_send) next.header_send = communicator_.plan(SendSpec{tensor_of(next.header), peer_, label_});
  next.header_sent = next.header_send->start();
  if (next.bytes.empty()) return;
  next.bytes_send = communicator_.plan(SendSpec{tensor_of(next.bytes), peer_, label_});
  next.bytes_sent = next.bytes_send->start();
}

bool Channel::sending() {
  for (; started_ > 0 && sending_.front()->is_sent(); --started_) {
    Sending& sent = *sending_.front();
    sent.header_sent = sent.bytes_sent = {};
    sent.bytes_send.reset();
    sent.keeper.reset();
    if (idle_.size() < most_idle) idle_.push_back(std::move(sending_.front()));
    sending_.pop_front();
  }
  while (started_ < std::min(sending_.size(), most_under_way)) start(*sending_[started_++]);
  look_at_ = sending_.size() + std::clamp<std::size_t>(sending_.size(), 1, most_unseen);
  return !sending_.empty();
}

void Channel::listen() {
  if (std::exchange(listening_, true)) return;
  header_received_ = header_receive_->start();
}

const MessageHeader* Channel::receive(MemoryFor memory_for) {
  if (!listening_ || !header_received_.ready()) return nullptr;
  if (bytes_receive_ == nullptr && incoming_.bytes > 0) {
    bytes_receive_ = communicator_.plan(ReceiveSpec{tensor_of(memory_for(incoming_)), peer_, label_});
    bytes_received_ = bytes_receive_->start();
  }
  if (!bytes_received_.ready()) return nullptr;
  bytes_received_ = {};
  bytes_receive_.reset();
  listening_ = false;
  received_bytes_ += incoming_.bytes;
  return &incoming_;
}

}  // namespace ronda
