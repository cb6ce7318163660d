#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/nonfinite_search.hpp>
#include <ronda/runtime/strategy/step/replica_updater.hpp>
#include <ronda/runtime/strategy/step/step_runner.hpp>

#include <string>
#include <utility>

namespace ronda {

StepRunner::StepRunner(Parts parts, const MirroredOptions& options, const Schedule& schedule, MakeState make_state)
    : communicator_(parts.communicator),
      computation_(parts.computation),
      replica_(parts.replica),
      exchange_(std::move(parts.exchange)),
      traits_(exchange_->traits()),
      rank_sums_(std::move(parts.rank_sums)),
      other_sums_(replica_.device()),
      host_copy_(replica_.device()) {
  const auto& sharded = traits_.share;
  accumulator_ = std::make_unique<GradientAccumulator>(replica_, sharded ? 1 : options.shape.micro_batches);
  updater_ =
      make_updater(options, replica_, parts.optimizer, schedule, sharded ? sharded->over_ranks : parts.over_parts,
                   sharded ? std::optional(sharded->share) : std::nullopt);
  if (updater_->reads_all_gradients() && traits_.pace != nullptr) traits_.pace->expect_all_sums();
  StepQueueOptions queue = queue_options(options);
  queue.record = queue.record && traits_.moves_alone;
  queue_ = make_step_queue(replica_.device(), communicator_, {traits_.sums, updater_->outcome()}, queue);
  state_ = make_state({communicator_, replica_, parts.optimizer, *updater_, *exchange_, *queue_,
                       std::move(parts.shares), parts.computing, options.shape.has_samples});
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void StepRunner::begin_step(const Batch& batch, const StepFlags& raised) {
  require_last(*queue_);
  run(batch, raised);
}

void StepRunner::accumulate(const Batch& batch, const StepFlags& raised) {
  require_before_last(*queue_);
  run(batch, raised);
}

void StepRunner::set_micro_batches(std::size_t count) {
  computation_.require_micro_batches(count);
  queue_->set_micro_batches(count);
}

void StepRunner::start(const Batch& batch) {
  if (batch.source() != nullptr && !queue_->keeps(*batch.source()))
    throw LogicError("the batch holds numbers of samples, and their dataset is not in device memory (see keeps)");
  computation_.check(batch);
  if (queue_->in_flight() == 0) clock_.resume();
  if (queue_->micro_batch() == 0) communicator_.set_step(state_->next_step());
}

/// One micro-batch; the last one of a step also updates the parameters. On a GPU this only queues the work.
void StepRunner::run(const Batch& given, const StepFlags& raised) {
  const FlushDenormals flushing = flush_denormals();
  start(given);
  queue_->enqueue(given, raised, [&](const Batch& here) {
    const bool last = queue_->at_last();
    if (last || traits_.share) exchange_->begin();
    if (!idles_) computation_.compute(here);
    if (!last) return;
    idles_ = false;
    update();
  });
}

/// The exchange sums the gradients, the updater decides and changes the parameters, and all ranks get the new ones.
void StepRunner::update() {
  Stream& stream = replica_.stream();
  exchange_->reduce(updater_->reads_all_gradients() ? GradientExchange::Sums::of_all : GradientExchange::Sums::of_range,
                    stream);
  clock_.lap(&StepTimes::communication);
  updater_->decide(traits_.sums, stream);
  const double exposed = exchange_->exposed_seconds();
  exchange_->update([&](const ArenaRange& range) { updater_->apply(range, stream); }, stream);
  clock_.lap(&StepTimes::optimizer);
  clock_.move(exchange_->exposed_seconds() - exposed, &StepTimes::optimizer, &StepTimes::communication);
  exchange_->publish(updater_->outcome(), stream);
  clock_.lap(&StepTimes::communication);
  updater_->average(stream);
}

StepResult StepRunner::finish_step() {
  StepResult result = count(queue_->finish());
  if (traits_.pace == nullptr) return result;
  const auto taken = traits_.pace->samples_taken();
  result.samples_of = taken.step;
  result.settled = taken.settled;
  return result;
}

StepResult StepRunner::count(const StepOutcome& outcome) {
  clock_.lap(&StepTimes::optimizer);
  state_->count(outcome.update.updates);
  return result_of(outcome, clock_.take());
}

std::optional<std::size_t> StepRunner::samples_for(std::size_t step, std::size_t steps) {
  const auto place = traits_.pace == nullptr ? std::optional(step) : traits_.pace->samples_for(step, steps);
  idles_ = !place;
  return place;
}

void StepRunner::synchronise_next() noexcept {
  if (traits_.pace != nullptr) traits_.pace->synchronise_next();
}

Pass StepRunner::training_pass(const Batch& here) const {
  Pass pass = replica_.pass(Mode::training, here, state_->next_step(), traits_.sums);
  pass.ranks = rank_sums_.get();
  return pass;
}

OnReady StepRunner::listen(std::size_t micro_batch) {
  return accumulator_->listen(micro_batch == 0, micro_batch + 1 == queue_->micro_batches(), *exchange_);
}

// ---- between steps --------------------------------------------------------------------------------------------------

Evaluation StepRunner::evaluate(const Shape& outputs, BatchLoader& loader, const SeeOutputs& see,
                                const Metrics& metrics) {
  const FlushDenormals flushing = flush_denormals();
  state_->average_states();
  const BatchPlan& plan = loader.plan();
  computation_.begin_evaluation(plan.is_empty() ? 0 : plan.steps_per_epoch() * plan.micro_batches());
  Evaluation evaluation;
  state_->with_average([&] {
    evaluation = ronda::evaluate({.communicator = communicator_,
                                  .device = replica_.device(),
                                  .outputs = outputs,
                                  .sums = other_sums_,
                                  .host = host_copy_,
                                  .see = see,
                                  .metrics = metrics},
                                 loader, [&](const Batch& given) -> Outputs {
                                   computation_.check(given);
                                   return computation_.evaluate_batch(given, other_sums_.there());
                                 });
  });
  computation_.end_evaluation();
  return evaluation;
}

std::string StepRunner::explain_nonfinite(const Batch& batch) {
  const FlushDenormals flushing = flush_denormals();
  if (traits_.pace != nullptr)
    if (std::string text = traits_.pace->explain_nonfinite(); !text.empty()) return text;
  return ronda::explain_nonfinite(replica_, communicator_, host_copy_, [&](const OnReady& on_ready) {
    return computation_.compute_alone(batch, on_ready, other_sums_);
  });
}

}  // namespace ronda
