#pragma once
#include <span>
#include <string>
#include <vector>

#include <ronda/core/function_ref.hpp>
#include <ronda/runtime/strategy/step/part_costs.hpp>
#include <ronda/core/message.hpp>
#include <ronda/runtime/trainer/training_run.hpp>

namespace ronda {

/// Writes the results of a training that has reached its end: parameters, the summary, predictions. If one cannot be
/// written, the others still are.
class Results final : public Hook {
 public:
  void before_step(TrainingRun& run, StepFlags& flags) override;
  void on_end(TrainingRun& run) override;

  /// After on_end: why results could not be written, one text each. The same on all ranks.
  [[nodiscard]] const std::vector<Message>& failures() const noexcept { return failures_; }

 private:
  void write_results(TrainingRun& run, std::span<const StageCosts> stages);
  void attempt(TrainingRun& run, FunctionRef<void()> write);

  double startup_seconds_ = 0;
  std::vector<Message> failures_;
};

}  // namespace ronda
