#include <ronda/collectives/host/planning/pair_message.hpp>
#include <ronda/core/error.hpp>

#include <string>
#include <utility>

namespace ronda {

PairMessage::PairMessage(const Links& links, const Exchange::Message& message, bool outgoing,
                         std::shared_ptr<PairSequence> sequence)
    : PairMessage(links, links.between_two(), message, outgoing, std::move(sequence)) {}

PairMessage::PairMessage(const Links& links, std::unique_ptr<FabricTransport> transport,
                         const Exchange::Message& message, bool outgoing, std::shared_ptr<PairSequence> sequence)
    : channels_(links.pair_channels()),
      transport_(*transport),
      sequence_(std::move(sequence)),
      peer_(message.peer),
      receives_(!outgoing && !message.bytes.empty()),
      exchange_(std::move(transport), only(message, outgoing), only(message, !outgoing)) {}

PairMessage::~PairMessage() {
  if (holds_channel_) sequence_->in_flight.reset(place());
  if (started_ && receives_ && transport_.received() < exchange_.pieces()) take_back_number();
}

std::vector<Exchange::Message> PairMessage::only(const Exchange::Message& message, bool wanted) {
  return wanted ? std::vector{message} : std::vector<Exchange::Message>();
}

Task PairMessage::run() {
  if (sequence_->broken) return refuse();
  number_ = sequence_->started++;
  started_ = true;
  transport_.use((*channels_)[place()]);
  return pass();
}

Task PairMessage::pass() {
  co_await turn_;
  sequence_->in_flight.set(place());
  holds_channel_ = true;
  co_await exchange_.run();
  sequence_->in_flight.reset(place());
  holds_channel_ = false;
}

void PairMessage::prepare() {
  exchange_.prepare();
  static_cast<void>(pass());
  static_cast<void>(refuse());
}

void PairMessage::take_back_number() noexcept {
  if (transport_.received() == 0 && number_ + 1 == sequence_->started)
    --sequence_->started;
  else
    sequence_->broken = true;
}

Task PairMessage::refuse() {
  throw CommunicationError("a receive from rank " + std::to_string(transport_.global_rank(peer_)) +
                           " was given up when part of its message had come, or a later receive was waiting: which "
                           "message is next cannot be known any more");
  co_return;
}

}  // namespace ronda
