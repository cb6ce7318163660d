#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/exchange/spoiled_anywhere.hpp>
#include <ronda/runtime/strategy/gradient_exchange.hpp>

namespace ronda {

/// The exchange of a stage's gradients among the ranks that have this stage, and of a step's sums among the stages too:
/// losses come from the last, flags from all, and what decides about a step, the norm of the gradients and whether an
/// update was finite, is all stages'. So every rank decides alike, though it knows the gradients of its stage alone.
class StageExchange final : public GradientExchange, public SumOverParts {
 public:
  /// Collective over the pipeline.
  /// @param pipeline  the ranks of one pipeline
  /// @param stage     the exchange among the ranks of one stage
  StageExchange(Communicator pipeline, std::unique_ptr<GradientExchange> stage);

  void begin() override { stage_->begin(); }
  void mark_ready(ParameterId id, Stream& stream) override { stage_->mark_ready(id, stream); }
  void reduce(Sums wanted, Stream& stream) override;
  double sum(double mine) override;
  [[nodiscard]] std::span<const ArenaRange> ranges_to_update(Stream& stream) override {
    return stage_->ranges_to_update(stream);
  }
  void publish(UpdateOutcome* outcome, Stream& stream) override;

  [[nodiscard]] StepControl& sums() noexcept override { return stage_->sums(); }
  [[nodiscard]] bool moves_alone() const noexcept override { return false; }
  void visit(StateVisitor& visitor) override { stage_->visit(visitor); }
  [[nodiscard]] std::span<const FusionBuffer::Bucket> buckets() const noexcept override { return stage_->buckets(); }
  [[nodiscard]] std::vector<std::string> describe() const override { return stage_->describe(); }
  [[nodiscard]] std::vector<std::string> report() const override { return stage_->report(); }
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return stage_->exposed_seconds() + exposed_seconds_;
  }
  [[nodiscard]] std::size_t memory() const noexcept override { return stage_->memory(); }

 private:
  void wait_for(Event event);

  Communicator pipeline_;
  std::unique_ptr<GradientExchange> stage_;
  std::vector<double> numbers_;  ///< of the stages
  std::unique_ptr<Collective> sums_, sum_;
  SpoiledAnywhere spoiled_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
