#pragma once
#include <ronda/core/stream.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/step/gradient_exchange.hpp>
#include <ronda/runtime/strategy/replica/step_clock.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>
#include <ronda/runtime/strategy/step/step_result.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

namespace ronda {

/// The end of a step with complete gradients: the exchange sums them, the updater decides and changes the parameters,
/// and all ranks receive the new ones. In the order of the stream. Collective.
inline void update(GradientExchange& exchange, Updater& updater, Stream& stream, StepClock& clock) {
  exchange.reduce(updater.reads_all_gradients() ? GradientExchange::Sums::of_all : GradientExchange::Sums::of_range,
                  stream);
  clock.lap(&StepTimes::communication);
  updater.decide(exchange.traits().sums, stream);
  const double exposed = exchange.exposed_seconds();
  exchange.update([&](const ArenaRange& range) { updater.apply(range, stream); }, stream);
  clock.lap(&StepTimes::optimizer);
  clock.move(exchange.exposed_seconds() - exposed, &StepTimes::optimizer, &StepTimes::communication);
  exchange.publish(updater.outcome(), stream);
  clock.lap(&StepTimes::communication);
  updater.average(stream);
}

/// Returns the result of a finished step, and counts its update.
inline StepResult count_step(const StepOutcome& outcome, TrainingState& state, StepClock& clock) {
  clock.lap(&StepTimes::optimizer);
  state.count(outcome.update.updates);
  return result_of(outcome, clock.take());
}

}  // namespace ronda
