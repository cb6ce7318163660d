#include <ronda/runtime/strategy/step/own_steps.hpp>
#include <ronda/runtime/strategy/step/step_result.hpp>

namespace ronda {

StepResult result_of(const StepOutcome& outcome, const StepTimes& times) noexcept {
  const auto& [sums, update] = outcome;
  StepResult result;
  result.weight = sums.weight;
  if (sums.weight > 0) {  // otherwise there is nothing to learn from: no update
    result.loss = sums.loss / sums.weight;
    result.metric = sums.metric / sums.weight;
  }
  result.learning_rate = update.learning_rate;
  result.gradient_norm = update.gradient_norm;
  result.stop = sums.flags.stop > 0;
  result.nonfinite = update.finite == 0;
  result.spoiled = update.spoiled != 0;
  result.of_finite = tells_nonfinite(sums) || tells_spoiled(sums);
  result.overflow = update.overflowed != 0;
  result.loss_scale = update.loss_scale;
  result.flags = sums.flags;
  result.times = times;
  return result;
}

}  // namespace ronda
