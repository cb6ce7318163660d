#pragma once
#include <bitset>
#include <memory>
#include <tuple>
#include <vector>

#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/members/links.hpp>

namespace ronda {

/// The messages from one rank to one other, by which both ends number them alike.
struct PairSequence {
  std::uint64_t started = 0;
  bool broken = false;                                     ///< the next number is not known
  std::bitset<std::tuple_size_v<PairChannels>> in_flight;  ///< by channel
};

/// A message between two ranks. Several can be in flight, whose pieces may pass one another: each uses one of the
/// group's channels for pairs, in turn, by the order in which messages were started, which is the same on both ends. It
/// waits while an earlier message still uses that channel. A receive that was given up before any piece came has taken
/// no message: the next one gets its number.
class PairMessage final : public Algorithm {
 public:
  /// @param sequence  of this direction between the two ranks
  PairMessage(const Links& links, const Exchange::Message& message, bool outgoing,
              std::shared_ptr<PairSequence> sequence);
  PairMessage(const PairMessage&) = delete;
  ~PairMessage() override;

  Task run() override;
  void prepare() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { exchange_.visit_traffic(visit); }

 private:
  /// Arrives when no earlier message uses the channel.
  class Turn final : public Awaitable {
   public:
    explicit Turn(const PairMessage& message) noexcept : message_(message) {}
    bool arrived() noexcept override { return !message_.sequence_->in_flight[message_.place()]; }

   private:
    const PairMessage& message_;
  };
  PairMessage(const Links& links, std::unique_ptr<FabricTransport> transport, const Exchange::Message& message,
              bool outgoing, std::shared_ptr<PairSequence> sequence);
  [[nodiscard]] static std::vector<Exchange::Message> only(const Exchange::Message& message, bool wanted);
  [[nodiscard]] std::size_t place() const noexcept { return number_ % channels_->size(); }
  Task pass();
  void take_back_number() noexcept;
  Task refuse();

  std::shared_ptr<const PairChannels> channels_;
  FabricTransport& transport_;
  std::shared_ptr<PairSequence> sequence_;
  int peer_;
  bool receives_, started_ = false;
  bool holds_channel_ = false;
  std::uint64_t number_ = 0;
  Turn turn_{*this};
  Exchange exchange_;
};

}  // namespace ronda
