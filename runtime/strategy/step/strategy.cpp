#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/strategy.hpp>

namespace ronda {

StepResult Strategy::train_step(const Batch& batch) {
  if (steps_in_flight() > 0) throw LogicError("train_step with steps in flight; finish_step gives their results");
  begin_step(batch);
  return finish_step();
}

}  // namespace ronda
