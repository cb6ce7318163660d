#include <ronda/runtime/checkpoint/state_copy.hpp>
#include <ronda/runtime/trainer/hooks/injected_faults.hpp>

#include <array>
#include <cmath>

namespace ronda {
namespace {

/// A bit of one number in the middle of the first parameter; where its layout has padding, of the first number.
void flip_in_parameter(Strategy& strategy) {
  const Parameter& parameter = strategy.parameters().front();
  StatesOnHost states(std::array{State{parameter.name, parameter.trained()}}, strategy.device());
  states.fetch();
  states.wait();
  const Tensor& value = states.states().front().tensor;
  const bool padded = value.desc().padded_count() != value.desc().count();
  flip_bit(value.pointer<float>()[padded ? 0 : value.desc().count() / 2]);
  states.send();
  states.wait();
}

}  // namespace

void InjectedFaults::before_batch(TrainingRun& run, const Batch& batch) {
  if (faults_.happens(FaultKind::flip, run.step() + 1)) flip_in_parameter(run.strategy());
  if (faults_.happens(FaultKind::nan, run.step() + 1)) *batch.input().pointer<float>() = std::nanf("");
}

}  // namespace ronda
