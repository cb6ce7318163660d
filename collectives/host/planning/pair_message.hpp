#pragma once
#include <memory>
#include <vector>

#include <ronda/collectives/host/algorithms/exchange.hpp>
#include <ronda/collectives/host/transport/mpi_transport.hpp>

namespace ronda {

/// The messages from one rank to one other: which is next.
struct PairSequence {
  std::uint64_t started = 0;
  bool broken = false;  ///< which one is next is not known
};

/// A message of two ranks alone. Pieces of several that are under way may pass one another: each has a tag of its own,
/// by the order in which they were started, which is the same on both ends. A receive that was given up before anything
/// came has taken no message: the next one gets its number.
class PairMessage final : public Algorithm {
 public:
  /// @param sequence  of what goes this way between the two
  PairMessage(std::unique_ptr<MpiTransport> transport, const Exchange::Message& message, bool outgoing,
              std::shared_ptr<PairSequence> sequence);
  PairMessage(const PairMessage&) = delete;
  ~PairMessage() override;

  Task run() override;
  void prepare() override;
  void visit_traffic(const std::function<void(Traffic&)>& visit) override { exchange_.visit_traffic(visit); }

 private:
  [[nodiscard]] static std::vector<Exchange::Message> only(const Exchange::Message& message, bool wanted);
  void take_back_number() noexcept;
  Task refuse();

  MpiTransport& transport_;
  std::shared_ptr<PairSequence> sequence_;
  int peer_;
  bool receives_, started_ = false;
  std::uint64_t number_ = 0;
  Exchange exchange_;
};

}  // namespace ronda
