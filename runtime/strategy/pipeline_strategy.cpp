#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/nonfinite_search.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_state.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>
#include <ronda/runtime/strategy/exchange/parts_exchange.hpp>
#include <ronda/runtime/strategy/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/step_update.hpp>

#include <utility>

namespace ronda {

// ---- a step ---------------------------------------------------------------------------------------------------------

void PipelineStrategy::begin_step(const Batch& batch) {
  require_last(*queue_);
  compute(batch);
}

void PipelineStrategy::accumulate(const Batch& batch) {
  require_before_last(*queue_);
  compute(batch);
}

void PipelineStrategy::set_micro_batches(std::size_t count) {
  if (count == options_.micro_batches) return;
  throw InputError("all stages of a pipeline take the same micro-batches; take .shares = equal");
}

/// One micro-batch goes in, and as many backwards follow as the schedule has at this place. After the last one the
/// gradients are complete.
void PipelineStrategy::compute(const Batch& given) {
  const FlushDenormals flushing = flush_denormals();
  check(given);
  clock_.resume();
  const std::size_t number = queue_->micro_batch(), warmup = stage_->warmup();
  const bool last = queue_->at_last();
  if (number == 0) {
    communicator_.set_step(state_->next_step());
    stage_->begin(queue_->micro_batches(), true);
  }
  queue_->enqueue(given, raised(), [&](const Batch& batch) {
    if (last) exchange_->begin();
    const auto pass_over = [&](const Batch& here) {
      return pass(Mode::training, here, state_->next_step(), &exchange_->sums());
    };
    stage_->forward(batch, pass_over, clock_);
    std::size_t oldest = 0;  // whose backward is to come
    if (number >= warmup) {
      backward(number - warmup);
      oldest = number - warmup + 1;
    }
    if (!last) return;
    while (oldest <= number) backward(oldest++);
    update(*exchange_, *updater_, replica_->stream(), clock_);
  });
}

void PipelineStrategy::backward(std::size_t micro_batch) {
  const bool first = micro_batch == 0, last = micro_batch + 1 == queue_->micro_batches();
  stage_->backward(accumulator_->listen(first, last, *exchange_), clock_);
}

Pass PipelineStrategy::pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) const {
  Pass pass = replica_->pass(mode, batch, step, sums);
  if (mode == Mode::training) pass.ranks = rank_sums_.get();
  return pass;
}

StepResult PipelineStrategy::finish_step() {
  const StepOutcome& outcome = queue_->finish();
  clock_.lap(&StepTimes::optimizer);
  state_->count(outcome.update.updates);
  return result_of(outcome, clock_.take());
}

/// The same error on all ranks of a pipeline, which have the same batch.
void PipelineStrategy::check(const Batch& batch) const {
  const Graph& graph = model_->whole();
  for (const GraphInput& input : graph.inputs) {
    const Value& value = graph.values[input.value];
    require_planned({value.shape, value.dtype, {}}, batch.field(input.field).desc());
  }
}

// ---- beside steps ---------------------------------------------------------------------------------------------------

Evaluation PipelineStrategy::evaluate(BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics) {
  const FlushDenormals flushing = flush_denormals();
  state_->average_states();
  StepClock clock;
  bool begun = false;
  const auto compute = [&](const Batch& given) -> Outputs {
    check(given);
    if (!std::exchange(begun, true))
      stage_->begin(loader.plan().steps_per_epoch() * loader.plan().micro_batches(), false);
    const auto pass_over = [&](const Batch& here) {
      return pass(Mode::evaluation, here, state_->updates(), other_sums_->there());
    };
    const Tensor& outputs = stage_->forward(given, pass_over, clock);
    return {given, stage_->last() ? &outputs : nullptr};
  };
  Evaluation evaluation;
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
  stage_->settle();
  return evaluation;
}

std::string PipelineStrategy::explain_nonfinite(const Batch& batch) {
  const FlushDenormals flushing = flush_denormals();
  return ronda::explain_nonfinite(*replica_, communicator_, host_copy_, [&] {
    StepClock clock;
    other_sums_->clear();
    stage_->begin(1, true);
    const auto pass_over = [&](const Batch& here) {
      return replica_->pass(Mode::training, here, state_->next_step(), other_sums_->there());
    };
    stage_->forward(batch, pass_over, clock);
    stage_->backward({}, clock);
    stage_->settle();
    return other_sums_->read().loss;
  });
}

const GradientExchange& PipelineStrategy::exchange() const noexcept { return *exchange_; }
TrainingState& PipelineStrategy::state() noexcept { return *state_; }
const TrainingState& PipelineStrategy::state() const noexcept { return *state_; }

std::vector<StageCosts> PipelineStrategy::stages() {
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  std::vector<double> mine{stage_->busy_seconds(), stage_->waited_seconds() + exchange_->exposed_seconds(),
                           static_cast<double>(plan_.memory.total())};
  std::vector<double> all(mine.size() * ranks);
  communicator_.allgather(Tensor(std::span(mine)), Tensor(std::span(all)));
  const std::vector<std::string> begins = model_->begins();
  std::vector<StageCosts> stages(stage_count_);
  const double pipelines = static_cast<double>(ranks_.shard.count);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    StageCosts& stage = stages[rank % stage_count_];
    stage.computing_seconds += all[3 * rank] / pipelines;
    stage.waiting_seconds += all[3 * rank + 1] / pipelines;
    stage.memory = static_cast<std::uint64_t>(all[3 * rank + 2]);
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].begins = begins[i];
    for (const ParameterRequest& request : model_->plan(i).requests)
      stages[i].parameters += static_cast<std::uint64_t>(request.desc.count());
    stages[i].predicted_bubble =
        static_cast<double>(stage_count_ - 1) / static_cast<double>(options_.micro_batches + stage_count_ - 1);
  }
  return stages;
}

}  // namespace ronda
