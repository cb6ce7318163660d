#pragma once
#include <ronda/runtime/checkpoint/faults.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// What goes wrong before a step, and in the numbers that it works on: for tests (TrainingOptions::faults).
class InjectedFaults final : public Hook {
 public:
  explicit InjectedFaults(Faults faults) : faults_(std::move(faults)) {}

  void before_step(TrainingRun& run, StepFlags&) override { faults_.before_step(run.step() + 1); }
  void before_batch(TrainingRun& run, const Batch& batch) override;
  [[nodiscard]] bool settles_after(std::uint64_t) const override { return true; }

 private:
  Faults faults_;
};

}  // namespace ronda
