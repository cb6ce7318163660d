#pragma once
#include <utility>

#include <ronda/runtime/trainer/hook.hpp>

namespace ronda {

/// Functions as a hook.
class CallbackHook final : public Hook {
 public:
  explicit CallbackHook(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  [[nodiscard]] bool settles_after(std::uint64_t) const override { return callbacks_.settles; }
  [[nodiscard]] bool needs_replicas_after(std::uint64_t) const override { return callbacks_.settles; }
  void after_step(TrainingRun&, const StepReport& report) override {
    if (callbacks_.step) callbacks_.step(report);
  }
  void after_test(TrainingRun&, const Evaluation& evaluation) override {
    if (callbacks_.evaluation) callbacks_.evaluation(evaluation);
  }
  void after_epoch(TrainingRun&, const EpochReport& report) override {
    if (callbacks_.epoch) callbacks_.epoch(report);
  }

 private:
  Callbacks callbacks_;
};

}  // namespace ronda
