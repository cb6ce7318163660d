#pragma once
#include <ronda/runtime/strategy/gradient_exchange.hpp>

namespace ronda {

/// Every rank gets all sums, by an allreduce a bucket beside the backward pass, and updates everything; or its own
/// part, where a derived class does the rest.
class BucketedAllreduce : public GradientExchange {
 public:
  /// Collective.
  /// @param updated  what this rank updates; its gradients are those of `gradients`, if in float32
  BucketedAllreduce(const Communicator& communicator, std::vector<GradientSlot> slots, const Buffer& gradients,
                    const ArenaRange& updated, const FusionOptions& options)
      : buckets_(communicator, std::move(slots), gradients, options), updated_(updated) {}

  void begin() override { buckets_.begin(); }
  void mark_ready(ParameterId id, Stream& stream) override { buckets_.mark_ready(id, stream); }
  void reduce(Sums /*wanted*/, Stream& stream) override { buckets_.wait(stream); }
  [[nodiscard]] std::span<const ArenaRange> ranges_to_update(Stream& /*stream*/) override { return {&updated_, 1}; }
  void publish(UpdateOutcome* /*outcome*/, Stream& /*stream*/) override {}

  [[nodiscard]] StepControl& sums() noexcept override { return buckets_.control(); }
  [[nodiscard]] bool moves_alone() const noexcept override { return buckets_.moves_alone(); }
  void visit(StateVisitor& visitor) override { buckets_.visit(visitor); }
  [[nodiscard]] std::span<const FusionBuffer::Bucket> buckets() const noexcept override { return buckets_.buckets(); }
  [[nodiscard]] std::vector<std::string> describe() const override { return buckets_.describe(); }
  [[nodiscard]] std::vector<std::string> report() const override { return buckets_.report(); }
  [[nodiscard]] double exposed_seconds() const noexcept override { return buckets_.exposed_seconds(); }
  [[nodiscard]] std::size_t memory() const noexcept override { return buckets_.memory(); }

 protected:
  FusionBuffer buckets_;

 private:
  ArenaRange updated_;
};

}  // namespace ronda
