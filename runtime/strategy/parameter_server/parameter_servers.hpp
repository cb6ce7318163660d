#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/parameter_server/gradient_pushes.hpp>
#include <ronda/runtime/strategy/parameter_server/served_control.hpp>
#include <ronda/runtime/strategy/parameter_server/served_rows.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Some ranks compute gradients, the *workers*; the others, the *servers*, keep the optimizer and update the
/// parameters, each its share of the arena. A step of two workers and two servers, whose shares are a and b:
///
///     worker 0    backward: a0 b0 ready -> push        pull: A B
///     worker 1    backward: a1 b1 ready -> push        pull: A B
///     server 2        a0 + a1 -> optimizer -> A        -> A to all workers
///     server 3        b0 + b1 -> optimizer -> B        -> B to all workers
///
/// Both go in pieces: a piece that has come from all workers is updated and sent back while later ones still come, so
/// that links carry gradients one way and values the other at the same time. Not where something looks at all gradients
/// before an update, nor with sparse tables: there a server begins when all have come.
///
/// Gradients are summed in the order of the workers' ranks, whichever comes first: two runs have the same bits. A
/// worker sends and receives each parameter once a step; a server W times its share, of W workers. Servers have each
/// other's new values where a synchronisation is asked for (synchronise_next, settle). Of tables with sparse gradients
/// the touched rows travel (ServedRows). The step's sums go the same way (ServedControl). Where all gradients are
/// looked at before an update, servers also give all ranks the sums, in the place of the gradients. Of a step that is
/// skipped for all, workers take back what their compressed pushes carried of earlier losses.
///
/// Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014, with a barrier each step;
/// TensorFlow's SyncReplicasOptimizer, of all replicas.
class ParameterServers final : public GradientExchange, public Pace, public KeptByExchange {
 public:
  /// Collective.
  /// @param replica  float32; has its arenas; keeps the states of this rank's share, none on a worker; outlives this
  ///                 object
  ParameterServers(Communicator communicator, const Roles& roles, Replica& replica, const FusionOptions& options);

  void begin() override;
  void mark_ready(ParameterId id, Stream& stream) override;
  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) override;
  void publish(UpdateOutcome* outcome, Stream& stream) override;

  void synchronise_next() noexcept override { asked_ = true; }
  void settle(Stream& stream) override;
  void expect_all_sums() override;
  void set_updates(std::uint64_t /*updates*/) override { values_differ_ = averages_differ_ = false; }

  void visit(StateVisitor& visitor) override;

  [[nodiscard]] double exposed_seconds() const noexcept override { return exposed_seconds_; }
  [[nodiscard]] ExchangeTraits traits() noexcept override {
    return {.sums = &sums_->control(), .pace = this, .kept = this};
  }
  [[nodiscard]] ExchangeReport report() const override;

 private:
  [[nodiscard]] ServerTraffic traffic() const;
  void plan_pulls(const std::vector<PushedPiece>& pieces);
  void plan_pushes(const std::vector<PushedPiece>& pieces, const FusionOptions& options);
  void plan_among_servers(Communicator servers);
  void gather_values(Stream& stream);
  void start_sums(Stream& stream);
  void sum_up(Sums wanted, Stream& stream);
  void tell_sums(Stream& stream);
  void update_pieces(FunctionRef<void(const ArenaRange&)> apply, Stream& stream);
  /// Of the tables with whole gradients, which lie before the others.
  [[nodiscard]] Range share() const { return dense_shares_[static_cast<std::size_t>(communicator_.rank())]; }
  [[nodiscard]] bool is_server() const noexcept { return roles_.is_server(communicator_.rank()); }

  Communicator communicator_;
  Roles roles_;
  const Replica& replica_;
  std::vector<Range> shares_;        ///< of the arena, by rank
  std::vector<Range> dense_shares_;  ///< of these, what is before sparse tables
  std::vector<FusionBuffer::Bucket> buckets_;
  std::unique_ptr<ServedControl> sums_;
  bool sums_started_ = false;                              ///< in this step
  std::unique_ptr<GradientPushes> pushes_;                 ///< null on a server
  std::unique_ptr<GradientArrivals> arrivals_;             ///< null on a worker
  std::unique_ptr<ServedRows> rows_;                       ///< null without sparse tables
  std::unique_ptr<MessageWindow> pulls_;                   ///< of values: a worker's receives, a server's sends
  std::unique_ptr<Collective> all_sums_;                   ///< of gradients, from servers to all
  std::unique_ptr<Collective> all_values_, all_averages_;  ///< among servers; null where there is nothing to tell
  SpoiledAnywhere spoiled_;
  std::vector<ArenaRange> updated_;                       ///< at once; empty on a worker
  bool by_pieces_ = false;                                ///< this step is updated as its gradients come
  bool asked_ = false;                                    ///< for a synchronisation after this step
  bool values_differ_ = false, averages_differ_ = false;  ///< each server knows those of its own share
  std::uint64_t pulled_bytes_ = 0;                        ///< of a step
  ServerTraffic traffic_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
