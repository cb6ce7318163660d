#include <ronda/collectives/host/planning/pair_message.hpp>
#include <ronda/core/error.hpp>

#include <string>
#include <utility>

namespace ronda {

PairMessage::PairMessage(std::unique_ptr<MpiTransport> transport, const Exchange::Message& message, bool outgoing,
                         std::shared_ptr<PairSequence> sequence)
    : transport_(*transport),
      sequence_(std::move(sequence)),
      peer_(message.peer),
      receives_(!outgoing && !message.bytes.empty()),
      exchange_(std::move(transport), only(message, outgoing), only(message, !outgoing)) {}

PairMessage::~PairMessage() {
  if (started_ && receives_ && transport_.received() < exchange_.pieces()) take_back_number();
}

std::vector<Exchange::Message> PairMessage::only(const Exchange::Message& message, bool wanted) {
  return wanted ? std::vector{message} : std::vector<Exchange::Message>();
}

Task PairMessage::run() {
  if (sequence_->broken) return refuse();
  number_ = sequence_->started++;
  started_ = true;
  transport_.use(Tag(TagPool::of_message(number_)));
  return exchange_.run();
}

void PairMessage::prepare() {
  exchange_.prepare();
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
