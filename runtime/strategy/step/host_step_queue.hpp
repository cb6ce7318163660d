#pragma once
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {

/// The processor's: work is done when it is given, and one step may be begun and not finished.
class HostStepQueue final : public StepQueue {
 public:
  HostStepQueue(const StepPlaces& places, std::size_t micro_batches) : places_(places), micro_batches_(micro_batches) {}

  void enqueue(const Batch& batch, const StepFlags& flags, Work work) override;
  const StepOutcome& finish() override;
  void drain() noexcept override { begun_ = false; }
  [[nodiscard]] std::size_t micro_batches() const noexcept override { return micro_batches_; }
  void set_micro_batches(std::size_t count) override;
  [[nodiscard]] std::size_t micro_batch() const noexcept override { return micro_batch_; }
  [[nodiscard]] bool at_last() const noexcept override { return micro_batch_ + 1 == micro_batches_; }
  [[nodiscard]] std::size_t in_flight() const noexcept override { return begun_ ? 1 : 0; }
  [[nodiscard]] std::size_t max_in_flight() const noexcept override { return 1; }

  const Batch& place(const Batch& batch) override { return batch; }
  void end_by_hand() noexcept override { micro_batch_ = 0; }
  const StepOutcome& outcome_by_hand() override;

  [[nodiscard]] std::size_t bytes_to_keep(const Dataset& /*data*/) const override { return 0; }
  void keep(const Dataset& data, const GatherRows& gather) override;
  [[nodiscard]] bool keeps(const Dataset& /*data*/) const noexcept override { return false; }
  void forget_data() noexcept override {}

 private:
  StepPlaces places_;
  std::size_t micro_batches_, micro_batch_ = 0;
  bool begun_ = false;
  StepOutcome outcome_;
};

}  // namespace ronda
