#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/exchange/new_values.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

/// ShardedUpdate where the ranks of a node share one copy of the values: every rank gets all sums, by an allreduce a
/// bucket beside the backward pass, and updates its share of its node's copy; then nodes exchange shares
/// (GatheredOneCopy). For all that NodeReduce does not do: several nodes, compression, allreduces by messages.
class OneCopyUpdate final : public BucketedAllreduce {
 public:
  /// Collective. Throws as GatheredOneCopy.
  /// @param replica  as for GatheredOneCopy
  OneCopyUpdate(const Communicator& communicator, std::vector<GradientSlot> slots, const Replica& replica,
                const FusionOptions& options)
      : BucketedAllreduce(communicator, std::move(slots), replica.reduced(), replica.kept_arena(), options),
        values_(communicator, replica) {}

  /// An allreduce is done when all have come to it, and some may be computing then.
  [[nodiscard]] std::span<const ArenaRange> ranges_to_update(Stream& stream) override {
    values_.meet();
    return BucketedAllreduce::ranges_to_update(stream);
  }
  void publish(UpdateOutcome* outcome, Stream& stream) override { values_.publish(outcome, stream); }
  [[nodiscard]] bool moves_alone() const noexcept override { return false; }
  [[nodiscard]] std::vector<std::string> report() const override {
    return joined(BucketedAllreduce::report(), values_.report());
  }
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return BucketedAllreduce::exposed_seconds() + values_.exposed_seconds();
  }
  [[nodiscard]] std::size_t memory() const noexcept override { return BucketedAllreduce::memory() + values_.memory(); }

 private:
  GatheredOneCopy values_;
};

}  // namespace ronda
