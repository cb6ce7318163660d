#pragma once
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

namespace ronda::test {

/// The parts of a training step, as a program of one's own calls them.
inline void step_by_hand(MirroredStrategy& strategy, const Batch& batch) {
  const Pass pass = strategy.begin_pass(batch);
  strategy.forward(batch, pass);
  strategy.loss(batch, pass);
  strategy.backward(pass);
  strategy.apply(strategy.reduce(pass), pass);
}

}  // namespace ronda::test
