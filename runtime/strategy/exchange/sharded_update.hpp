#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/exchange/new_values.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Every rank gets all sums, by an allreduce a bucket beside the backward pass, and updates its share of the arena
/// alone, the elements whose optimizer states it keeps; then all ranks get the new values (GatheredValues, or
/// GatheredOneCopy where the ranks of a node share one copy). For all that NodeReduce does not do: several nodes,
/// compression, allreduces by messages.
///
/// The first stage of Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC
/// 2020. Sums are those of the allreduce, so that the bits are the same as where everybody updates everything; that
/// sends half as much again, 3 (n-1)/n of the arena where the allreduce alone sends 2 (n-1)/n.
class ShardedUpdate final : public BucketedAllreduce {
 public:
  /// Collective.
  /// @param replica  has its arenas, and keeps the states of this rank's share; outlives this object
  ShardedUpdate(const Communicator& communicator, std::vector<GradientSlot> slots, const Replica& replica,
                const FusionOptions& options, std::unique_ptr<NewValues> values)
      : BucketedAllreduce(communicator, std::move(slots), replica.reduced(), replica.kept_arena(), options),
        values_(std::move(values)) {}

  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) override {
    values_->before_update();
    BucketedAllreduce::update(apply, stream);
  }
  void publish(UpdateOutcome* outcome, Stream& stream) override { values_->publish(outcome, stream); }
  [[nodiscard]] ExchangeTraits traits() noexcept override {
    ExchangeTraits traits = BucketedAllreduce::traits();
    traits.moves_alone = false;
    return traits;
  }
  [[nodiscard]] ExchangeReport report() const override {
    ExchangeReport report = BucketedAllreduce::report();
    report.costs = joined(std::move(report.costs), values_->report());
    report.memory += values_->memory();
    return report;
  }
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return BucketedAllreduce::exposed_seconds() + values_->exposed_seconds();
  }

 private:
  std::unique_ptr<NewValues> values_;
};

}  // namespace ronda
