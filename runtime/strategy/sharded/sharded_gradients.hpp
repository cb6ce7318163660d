#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/ready_buckets.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/sharded/bucket_sums.hpp>
#include <ronda/runtime/strategy/sharded/gradient_ring.hpp>
#include <ronda/runtime/strategy/exchange/new_values.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Ranks sum each bucket of gradients beside the backward pass, and keep of the sums those of their share alone: the
/// memory of the others is used again for the gradients that come next (GradientRing). Each rank then updates its
/// share, and all ranks get the new values. With several micro-batches the sums of each are added to the share.
///
/// The second stage of Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC
/// 2020. A rank's gradients take the ring and 1/n of the arena; between nodes it sends 2 (n-1)/n of the arena, or a
/// little more, where ShardedUpdate sends 3 (n-1)/n.
class ShardedGradients final : public GradientExchange, public SumOverParts {
 public:
  struct Parts {
    const Replica& replica;  ///< with its arenas: the gradients' addresses are of ring memory; outlives the exchange
    GradientRing ring;
    std::unique_ptr<BucketSums> sums;
    Buffer shared_ring;          ///< that other ranks read; empty: none does
    Buffer share;                ///< of the sums, this rank's
    std::vector<float*> copies;  ///< of this rank's share of the values, which the update writes too
    std::unique_ptr<NewValues> values;
  };
  /// Collective.
  ShardedGradients(Communicator communicator, Parts parts);

  /// Before each micro-batch.
  void begin() override;
  void mark_ready(ParameterId id, Stream& stream) override;
  void reduce(Sums wanted, Stream& stream) override;
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& /*stream*/) override { apply(updated_); }
  void publish(UpdateOutcome* outcome, Stream& stream) override { parts_.values->publish(outcome, stream); }

  double sum(double mine) override { return norms_.sum(mine); }
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return exposed_seconds_ + norms_.exposed_seconds() + parts_.values->exposed_seconds();
  }
  [[nodiscard]] ExchangeTraits traits() noexcept override {
    return {.sums = &control(), .share = SumsOfShare{updated_, this}};
  }
  [[nodiscard]] ExchangeReport report() const override;

 private:
  [[nodiscard]] StepControl& control() noexcept;
  [[nodiscard]] std::vector<std::string> lines_of_plan() const;
  void start_full_buckets(Stream& stream);
  void finish_pass();

  Parts parts_;
  ReadyBuckets ready_;
  ArenaRange updated_;
  Buffer control_memory_;
  std::unique_ptr<Collective> control_;
  SumInOrder norms_;
  std::size_t started_ = 0;  ///< buckets, in this pass
  std::size_t passes_ = 0;   ///< of this step that were begun
  double exposed_seconds_ = 0;
};

/// What a rank whose gradients are sharded keeps of them.
[[nodiscard]] GradientRing ring_of(const Replica& replica, const FusionOptions& options);
/// Bytes of it: the ring, and the share of the rank that has most.
[[nodiscard]] std::size_t bytes_of_sharded_gradients(const Replica& replica, const FusionOptions& options, int ranks);
/// Throws InputError, with the remedy, where each rank cannot sum and update its share alone: half types, rules that
/// need norms of whole parameters, compression, other algorithms than auto, node and ring.
void require_sharded_gradients(const ReplicaPlan& plan, const Optimizer& optimizer, const FusionOptions& options);
/// Takes the arenas. Collective; errors are agreed.
/// @param one_copy, keeps_average  as for make_exchange
std::unique_ptr<GradientExchange> make_sharded_gradients(Communicator& communicator, Replica& replica,
                                                         const FusionOptions& options, bool one_copy,
                                                         bool keeps_average, EventSink& sink);

}  // namespace ronda
