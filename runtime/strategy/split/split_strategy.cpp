#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/nonfinite_search.hpp>
#include <ronda/runtime/strategy/parts/parts_exchange.hpp>
#include <ronda/runtime/strategy/split/planned_part_exchange.hpp>
#include <ronda/runtime/strategy/split/split_state.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>
#include <ronda/runtime/strategy/step/step_update.hpp>

#include <algorithm>
#include <iterator>

namespace ronda {

// ---- a step ---------------------------------------------------------------------------------------------------------

void SplitStrategy::begin_step(const Batch& batch) {
  require_last(*queue_);
  compute(batch);
}

void SplitStrategy::accumulate(const Batch& batch) {
  require_before_last(*queue_);
  compute(batch);
}

void SplitStrategy::set_micro_batches(std::size_t count) {
  if (count == options_.micro_batches) return;
  throw InputError("all ranks that split a model take the same micro-batches; take .shares = equal");
}

/// One micro-batch: as a mirrored step's, but for what the parts tell each other on the way.
void SplitStrategy::compute(const Batch& given) {
  const FlushDenormals flushing = flush_denormals();
  replica_->check(given);
  clock_.resume();
  if (queue_->micro_batch() == 0) communicator_.set_step(state_->next_step());
  queue_->enqueue(given, raised(), [&](const Batch& batch) {
    const bool first = queue_->micro_batch() == 0, last = queue_->at_last();
    if (last) exchange_->begin();
    Pass training = pass(Mode::training, batch, state_->next_step(), exchange_->traits().sums);
    training.on_ready = accumulator_->listen(first, last, *exchange_);
    replica_->compute(batch, training, clock_);
    if (last) update(*exchange_, *updater_, replica_->stream(), clock_);
  });
}

/// All ranks of a group have the same loss: one tells it.
Pass SplitStrategy::pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) {
  Pass pass = replica_->pass(mode, batch, step, ranks_.part == 0 ? sums : &ignored_);
  pass.parts = parts_.get();
  if (mode == Mode::training) pass.ranks = rank_sums_.get();
  return pass;
}

StepResult SplitStrategy::finish_step() { return count_step(queue_->finish(), *state_, clock_); }

// ---- beside steps ---------------------------------------------------------------------------------------------------

Evaluation SplitStrategy::evaluate(BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics) {
  const FlushDenormals flushing = flush_denormals();
  state_->average_states();
  const auto compute = [&](const Batch& given) -> Outputs {
    replica_->check(given);
    const Tensor& outputs =
        replica_->evaluate(given, pass(Mode::evaluation, given, state_->updates(), other_sums_->there()));
    return {given, ranks_.part == 0 ? &outputs : nullptr};
  };
  Evaluation evaluation;
  const auto of_steps = parts_ != nullptr ? parts_->costs() : PlannedPartExchange::Costs{};
  state_->with_average([&] {
    evaluation = ronda::evaluate({.communicator = communicator_,
                                  .device = device(),
                                  .outputs = plan_.outputs,
                                  .sums = *other_sums_,
                                  .host = host_copy_,
                                  .see = see,
                                  .metrics = metrics},
                                 loader, compute);
  });
  if (parts_ != nullptr) parts_->set_costs(of_steps);
  return evaluation;
}

std::string SplitStrategy::explain_nonfinite(const Batch& batch) {
  const FlushDenormals flushing = flush_denormals();
  return ronda::explain_nonfinite(*replica_, communicator_, host_copy_, [&](const OnReady& on_ready) {
    StepClock clock;
    other_sums_->clear();
    Pass again = replica_->pass(Mode::training, batch, state_->next_step(), other_sums_->there());
    again.parts = parts_.get();
    again.on_ready = on_ready;
    replica_->compute(batch, again, clock);
    return other_sums_->read().loss;
  });
}

const GradientExchange& SplitStrategy::exchange() const noexcept { return *exchange_; }
TrainingState& SplitStrategy::state() noexcept { return *state_; }
const TrainingState& SplitStrategy::state() const noexcept { return *state_; }

SplitCosts SplitStrategy::split() const {
  SplitCosts costs{.parts = ranks_.parts};
  std::ranges::transform(model_->choices(), std::back_inserter(costs.layers),
                         [](const SplitChoice& choice) { return text_of(choice); });
  for (std::size_t part = 0; part < ranks_.parts; ++part) {
    std::uint64_t elements = 0;
    for (const ParameterRequest& request : model_->plan(part).requests)
      elements += static_cast<std::uint64_t>(request.desc.count());
    costs.parameters = std::max(costs.parameters, elements);
  }
  if (parts_ != nullptr) {
    costs.bytes = parts_->costs().bytes;
    costs.waiting_seconds = parts_->costs().seconds;
  }
  return costs;
}

}  // namespace ronda
