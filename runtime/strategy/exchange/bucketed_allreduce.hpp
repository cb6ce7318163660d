#pragma once
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>

namespace ronda {

/// Every rank gets all sums, by an allreduce a bucket beside the backward pass, and updates everything; or its own
/// part, where a derived class does the rest.
class BucketedAllreduce : public GradientExchange, public KeptByExchange {
 public:
  /// Collective.
  /// @param updated  what this rank updates; its gradients are those of `gradients`, if in float32
  BucketedAllreduce(const Communicator& communicator, std::vector<GradientSlot> slots, const Buffer& gradients,
                    const ArenaRange& updated, const FusionOptions& options)
      : buckets_(communicator, std::move(slots), gradients, options), updated_(updated) {}

  void begin() override { buckets_.begin(); }
  void mark_ready(ParameterId id, Stream& stream) override { buckets_.mark_ready(id, stream); }
  void reduce(Sums /*wanted*/, Stream& stream) override { buckets_.wait(stream); }
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& /*stream*/) override { apply(updated_); }
  void publish(UpdateOutcome* /*outcome*/, Stream& /*stream*/) override {}

  void visit(StateVisitor& visitor) override { buckets_.visit(visitor); }

  [[nodiscard]] double exposed_seconds() const noexcept override { return buckets_.exposed_seconds(); }
  [[nodiscard]] ExchangeTraits traits() noexcept override {
    return {.sums = &buckets_.control(), .moves_alone = buckets_.moves_alone(), .kept = this};
  }
  [[nodiscard]] ExchangeReport report() const override {
    return {.plan = buckets_.describe(),
            .costs = buckets_.report(),
            .memory = buckets_.memory(),
            .buckets = buckets_.buckets()};
  }

 protected:
  FusionBuffer buckets_;

 private:
  ArenaRange updated_;
};

}  // namespace ronda
