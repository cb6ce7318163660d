#pragma once
#include <cstddef>
#include <optional>

#include <ronda/core/event_sink.hpp>
#include <ronda/core/step_control.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>

namespace ronda {

/// The result of a step, over all ranks.
struct StepResult {
  double loss = 0, metric = 0;  ///< exact means over the global batch, before the update
  double weight = 0;            ///< sum of the samples' weights
  double learning_rate = 0;
  double gradient_norm = 0;  ///< before clipping; only computed if clipping needs it
  bool stop = false;         ///< some rank asked to stop after this step
  bool nonfinite = false;    ///< the loss, or a checked gradient, was not finite: there was no update
  bool spoiled = false;      ///< there was an update, but some parameters or states are not finite after it
  bool of_finite = false;    ///< result of several steps, some of them not finite: the means are over the finite steps
  bool overflow = false;     ///< some sum of gradients exceeded float16: no update, and the loss scale is halved
  double loss_scale = 1;     ///< dynamic loss scale of the next step, for float16 gradients; 1 for other types
  StepFlags flags = {};      ///< how many ranks raised each
  /// If ranks step at their own pace: the step whose samples the gradients were computed from, by its number from
  /// Strategy::samples_for. Nullopt: this step.
  std::optional<std::size_t> samples_of = {};
  bool settled = true;  ///< no rank has begun to compute samples of another step
  StepTimes times;      ///< without data
};

/// Means of the sums, and the decision.
[[nodiscard]] StepResult result_of(const StepOutcome& outcome, const StepTimes& times) noexcept;

}  // namespace ronda
