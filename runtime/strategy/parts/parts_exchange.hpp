#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/core/tensor.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/exchange/step_agreements.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>

namespace ronda {

/// The exchange of gradients where ranks have parts of one model (stages of a pipeline, or parts of its operations):
/// among the ranks that have the same part, and of a step's sums among the parts too. Losses come from one part, flags
/// from all, and what decides about a step, the norm of the gradients and whether an update was finite, is all parts'.
/// So every rank decides alike, though it knows the gradients of its part alone.
class PartsExchange final : public GradientExchange, public SumOverParts {
 public:
  /// Collective over the group.
  /// @param group  the ranks that have one model together, by part
  /// @param part   the exchange among the ranks that have this rank's part
  PartsExchange(Communicator group, std::unique_ptr<GradientExchange> part);

  /// These gradients every part has, of parameters that are to stay equal: from now on `reduce` gives all parts the
  /// first one's sums, since each has added them up over ranks of its own, maybe in another order. Collective over the
  /// group; the same number of bytes on all ranks. They are views into the arena.
  void keep_alike(std::vector<Tensor> gradients);

  void begin() override { part_->begin(); }
  void mark_ready(ParameterId id, Stream& stream) override { part_->mark_ready(id, stream); }
  void reduce(Sums wanted, Stream& stream) override;
  double sum(double mine) override { return norms_.sum(mine); }
  void update(FunctionRef<void(const ArenaRange&)> apply, Stream& stream) override { part_->update(apply, stream); }
  void publish(UpdateOutcome* outcome, Stream& stream) override;

  [[nodiscard]] ExchangeTraits traits() noexcept override {
    ExchangeTraits traits = part_->traits();
    traits.moves_alone = false;
    return traits;
  }
  [[nodiscard]] ExchangeReport report() const override {
    ExchangeReport report = part_->report();
    report.memory += alike_memory_.bytes();
    return report;
  }
  [[nodiscard]] double exposed_seconds() const noexcept override {
    return part_->exposed_seconds() + norms_.exposed_seconds() + exposed_seconds_;
  }

 private:
  void wait_for(Event event);
  void tell_alike();

  Communicator group_;
  std::unique_ptr<GradientExchange> part_;
  std::unique_ptr<Collective> sums_;
  SumInOrder norms_;
  std::vector<Tensor> alike_;
  Buffer alike_memory_;  ///< their bytes, one after another, as they are told
  std::unique_ptr<Collective> tell_;
  SpoiledAnywhere spoiled_;
  double exposed_seconds_ = 0;
};

}  // namespace ronda
