#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/nonfinite_search.hpp>

#include <utility>

namespace ronda {

// ---- a step ---------------------------------------------------------------------------------------------------------

void MirroredStrategy::begin_step(const Batch& batch) {
  if (!queue_->at_last())
    throw LogicError("a step of " + std::to_string(options_.micro_batches) + " micro-batches was begun with " +
                     std::to_string(queue_->micro_batch()) + " before the last");
  begin_micro_batch(batch);
}

void MirroredStrategy::accumulate(const Batch& batch) {
  if (queue_->at_last())
    throw LogicError("a step has " + std::to_string(options_.micro_batches) +
                     " micro-batches, and the last one ends it");
  begin_micro_batch(batch);
}

/// The replica computes, the exchange agrees, the updater changes: on the processor now, on a GPU when it comes to it.
void MirroredStrategy::begin_micro_batch(const Batch& given) {
  const FlushDenormals flushing = arithmetic();
  start(given);
  queue_->enqueue(given, raised_, [&](const Batch& batch) {
    Stream& stream = replica_->stream();
    const bool first = queue_->micro_batch() == 0, last = queue_->at_last();
    if (last) exchange_->begin();
    Pass pass = training_pass(batch);
    pass.on_ready = accumulator_->listen(first, last, *exchange_);
    replica_->compute(batch, pass, clock_);
    if (!last) return;
    exchange_->reduce(
        updater_->reads_all_gradients() ? GradientExchange::Sums::of_all : GradientExchange::Sums::of_range, stream);
    clock_.lap(&StepTimes::communication);
    updater_->decide(&exchange_->sums(), stream);
    updater_->apply(exchange_->range_to_update(stream), stream);
    exchange_->publish(updater_->outcome(), stream);
  });
}

StepResult MirroredStrategy::finish_step() {
  const StepOutcome& outcome = queue_->finish();
  clock_.lap(&StepTimes::optimizer);
  updates_ = outcome.update.updates;
  return result_of(outcome, clock_.take());
}

StepResult MirroredStrategy::train_step(const Batch& batch) {
  require_none_in_flight("train_step");
  begin_step(batch);
  return finish_step();
}

void MirroredStrategy::start(const Batch& batch) {
  if (batch.source() != nullptr && !keeps(*batch.source()))
    throw LogicError("a batch that names its samples was given to a strategy that does not keep them; see keeps");
  replica_->check(batch);
  if (steps_in_flight() == 0) clock_.resume();
  if (queue_->micro_batch() == 0) communicator_.set_step(updates_ + steps_in_flight() + 1);
}

Pass MirroredStrategy::training_pass(const Batch& batch) {
  return replica_->pass(Mode::training, batch, updates_ + steps_in_flight() + 1, &exchange_->sums());
}

// ---- a step by hand -------------------------------------------------------------------------------------------------

Pass MirroredStrategy::begin_pass(const Batch& batch) {
  require_none_in_flight("a step by hand");
  start(batch);
  if (queue_->micro_batch() == 0) step_sums_->clear(raised_);
  if (queue_->at_last()) exchange_->begin();
  return training_pass(batch);
}

const Tensor& MirroredStrategy::forward(const Batch& batch, const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  const Tensor& outputs = replica_->forward(batch, pass);
  clock_.lap(&StepTimes::forward);
  return outputs;
}

const Tensor& MirroredStrategy::loss(const Batch& batch, const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  return replica_->loss(batch, pass);
}

void MirroredStrategy::backward(const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  Pass reporting = pass;
  reporting.on_ready = accumulator_->listen(queue_->micro_batch() == 0, queue_->at_last(), *exchange_);
  replica_->backward(reporting);
  clock_.lap(&StepTimes::backward);
}

const StepControl& MirroredStrategy::reduce(const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  exchange_->reduce(GradientExchange::Sums::of_all, pass.stream);
  const StepControl& total = step_sums_->read();
  communicator_.require_devices();
  queue_->end_by_hand();
  clock_.lap(&StepTimes::communication);
  return total;
}

StepResult MirroredStrategy::apply(const StepControl& total, const Pass& pass) {
  const FlushDenormals flushing = arithmetic();
  step_sums_->write(total);
  updater_->decide(&exchange_->sums(), pass.stream);
  updater_->apply(exchange_->range_to_update(pass.stream), pass.stream);
  exchange_->publish(updater_->outcome(), pass.stream);
  const StepOutcome& outcome = queue_->outcome_by_hand();
  clock_.lap(&StepTimes::optimizer);
  updates_ = outcome.update.updates;
  return result_of(outcome, clock_.take());
}

// ---- beside steps ---------------------------------------------------------------------------------------------------

std::string MirroredStrategy::explain_nonfinite(const Batch& batch) {
  const FlushDenormals flushing = arithmetic();
  return ronda::explain_nonfinite(*replica_, communicator_, place(batch), updates_ + steps_in_flight() + 1,
                                  *other_sums_, host_);
}

Evaluation MirroredStrategy::evaluate(BatchLoader& loader, const SeeOutputs& see) {
  const FlushDenormals flushing = arithmetic();
  average_states();
  return ronda::evaluate(*replica_, *queue_, communicator_, loader, updates_, *other_sums_, host_, see);
}

}  // namespace ronda
