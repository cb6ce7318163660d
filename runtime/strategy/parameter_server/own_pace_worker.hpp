#pragma once
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <ronda/runtime/key_value/detail/channel.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace.hpp>

namespace ronda {

/// A worker's part of OwnPace.
class OwnPaceWorker final : public OwnPace {
 public:
  /// Collective, over all ranks, with OwnPaceServer's.
  OwnPaceWorker(const Communicator& communicator, const KeyValueOptions& how, const std::vector<GradientSlot>& slots,
                const Replica& replica, const FusionOptions& options);

  [[nodiscard]] std::optional<std::size_t> samples_for(std::size_t step, std::size_t steps) override;
  void begin() override;
  void mark_ready(ParameterId id, Stream& stream) override;
  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> /*apply*/, Stream& /*stream*/) override {}
  void publish(UpdateOutcome* outcome, Stream& stream) override;
  void set_updates(std::uint64_t updates) override;
  void visit(StateVisitor& visitor) override { pushes_.visit(visitor); }

 private:
  [[nodiscard]] std::size_t memory() const noexcept override { return pushes_.memory(); }

  /// Messages with one server.
  struct Server {
    Server(const Communicator& communicator, int its_rank)
        : rank(its_rank), answers(communicator, rank, answer_label) {}
    int rank;
    std::unique_ptr<Collective> push = {};
    Channel answers;
  };
  void ask(Stream& stream);
  MessageHeader receive(Server& server, Channel::MemoryFor memory_for);
  MessageHeader hear(Server& server);
  [[nodiscard]] bool was_applied(const MessageHeader& answer) const;
  void begin_anew();

  GradientPushes pushes_;
  Push push_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::deque<Record> known_;  ///< of this step and later ones: it has only to go through them
  std::uint64_t steps_ = 0;   ///< since the last one that settled
  std::uint64_t next_ = 0;    ///< asynchronous: the step whose samples it computes, counted likewise
  std::uint64_t end_ = std::numeric_limits<std::uint64_t>::max();  ///< asynchronous: of the epoch, counted likewise
  bool idle_ = false, late_ = false;  ///< in this step: there are no samples; it is over already
};

}  // namespace ronda
