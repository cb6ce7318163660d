#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/step/nonfinite_search.hpp>
#include <ronda/runtime/strategy/parts/make_parts_exchange.hpp>
#include <ronda/runtime/strategy/pipeline/gathered_costs.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_plan.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_state.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/step/replica_updater.hpp>
#include <ronda/runtime/strategy/step/step_update.hpp>

#include <utility>

namespace ronda {

// ---- what it is made of ---------------------------------------------------------------------------------------------

PipelineStrategy::PipelineStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule,
                                   const MirroredOptions& options, EventSink* sink)
    : communicator_(std::move(communicator)),
      sink_(sink != nullptr ? *sink : silence_),
      options_(options.completed()),
      stage_count_(options_.strategy.or_default<Pipeline>().stages_on(static_cast<std::size_t>(communicator_.size()))),
      ranks_(communicator_, stage_count_),
      optimizer_(std::move(optimizer)),
      host_copy_(options_.platform.device) {
  agree(communicator_, [&] { use_threads(options_.threads); });
  agree(communicator_, [&] { require_pipelined(options_); });
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  plan_stages(model, loss, picker);
  agree(communicator_, [&] { make_replica(loss, picker.answered()); });
  check_memory();
  agree(communicator_, [&] { replica_->take_memory(optimizer_->states().size(), std::nullopt, false); });
  agree_on_groups(communicator_, [&] {
    exchange_ = make_parts_exchange(ranks_, *replica_, whole_->values_of_mine(), options_.fusion);
    rank_sums_ = make_rank_sums(ranks_.replicas, replica_->program());
  });
  agree(communicator_, [&] { make_parts(schedule); });
  for (auto& line : describe_sums(communicator_, ranks_, *exchange_, "stage")) plan_.lines.push_back(std::move(line));
  plan_.memory.exchange = exchange_->report().memory;
  check_memory();
  plan_.picks = picker.answered();
  for (const auto& [question, answer] : model_->chosen()) plan_.picks.insert_or_assign(question, answer);
  plan_.timed_something = picker.timed_something() || model_->measured();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] { replica_->initialize(options_.initializer, options_.seed); });
  whole_->gather(ranks_.group);
  whole_->restart_average();
  tell_plan(plan_, options_, *model_, ranks_, communicator_, sink_);
}

PipelineStrategy::~PipelineStrategy() = default;

void PipelineStrategy::plan_stages(const Layer& model, const Loss& loss, RankPicker& picker) {
  const StageRequest request{.model = model,
                             .loss = loss,
                             .primitives = *options_.platform.primitives,
                             .stream = *options_.platform.device.stream,
                             .fields = options_.fields,
                             .rows = options_.batch_capacity,
                             .micro_batches = options_.micro_batches,
                             .optimizer_states = optimizer_->states().size(),
                             .seed = options_.seed,
                             .plan_name = options_.plan_name};
  model_ = std::make_unique<StagedModel>(request, options_.strategy.or_default<Pipeline>(), stage_count_, picker,
                                         communicator_);
  agree(communicator_, [&] { require_dense_gradients(*model_); });
}

void PipelineStrategy::make_replica(const Loss& loss, const Picks& answered) {
  replica_ = std::make_unique<Replica>(model_->take_program(ranks_.part), options_.platform.device,
                                       options_.platform.primitives, options_.global_batch, options_.seed);
  const bool last = ranks_.part + 1 == stage_count_;
  while (more_.size() + 1 < Stage::slots(stage_count_, options_.micro_batches))
    more_.push_back(plan_again(model_->graph(ranks_.part), last ? &loss : nullptr, *options_.platform.primitives,
                               answered, options_of_stage(ranks_.part)));
  whole_ = std::make_unique<WholeModel>(*model_, ranks_.part, options_.platform.device, options_.ema_decay > 0);
  plan_ = plan_pipeline(options_, *model_, *replica_, *whole_, *optimizer_, more_.size() + 1);
}

void PipelineStrategy::check_memory() const {
  agree(communicator_, [&] {
    check_memory_limit(plan_.memory, options_.memory_limit, options_.batch_capacity, options_.micro_batches);
  });
}

/// All that works on the arenas.
void PipelineStrategy::make_parts(const Schedule& schedule) {
  const ComputeDevice& device = options_.platform.device;
  replica_->take_average(whole_->average_of_mine());
  replica_->bind();
  whole_->bind(*replica_);
  accumulator_ = std::make_unique<GradientAccumulator>(*replica_, options_.micro_batches);
  updater_ = make_updater(options_, *replica_, *optimizer_, schedule, exchange_.get());
  other_sums_ = std::make_unique<ControlBlock>(device);
  queue_ = make_step_queue(
      device, communicator_, {exchange_->traits().sums, updater_->outcome()},
      {.fields = options_.fields, .rows = options_.batch_capacity, .micro_batches = options_.micro_batches});
  state_ = std::make_unique<PipelineState>(TrainingState::Parts{communicator_,
                                                                *replica_,
                                                                *optimizer_,
                                                                *updater_,
                                                                *exchange_,
                                                                *queue_,
                                                                {},
                                                                shard_of(communicator_),
                                                                options_.has_samples},
                                           PipelineState::Ranks{ranks_.group, ranks_.replicas}, *model_, *whole_);
  stage_ = std::make_unique<Stage>(
      Stage::Parts{ranks_.group, *replica_, std::move(more_), options_.fields, options_.batch_capacity});
}

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

/// One micro-batch goes in, and as many halves of backward follow as the schedule has at this place. After the last one
/// the gradients are complete.
void PipelineStrategy::compute(const Batch& given) {
  const FlushDenormals flushing = flush_denormals();
  check(given);
  clock_.resume();
  const bool last = queue_->at_last();
  if (queue_->micro_batch() == 0) {
    communicator_.set_step(state_->next_step());
    stage_->begin(queue_->micro_batches(), true);
  }
  queue_->enqueue(given, raised(), [&](const Batch& batch) {
    if (last) exchange_->begin();
    const auto pass_over = [&](const Batch& here) {
      return pass(Mode::training, here, state_->next_step(), exchange_->traits().sums);
    };
    stage_->forward(batch, pass_over, clock_);
    while (stage_->inputs_are_due()) {
      stage_->backward_inputs(listen(stage_->inputs_done()), clock_);
      while (stage_->parameters_are_due()) stage_->backward_parameters(listen(stage_->parameters_done()), clock_);
    }
    if (last) update(*exchange_, *updater_, replica_->stream(), clock_);
  });
}

/// A gradient is summed in the order of micro-batches, though another's may be summed in between.
OnReady PipelineStrategy::listen(std::size_t micro_batch) {
  return accumulator_->listen(micro_batch == 0, micro_batch + 1 == queue_->micro_batches(), *exchange_);
}

Pass PipelineStrategy::pass(Mode mode, const Batch& batch, std::uint64_t step, StepControl* sums) const {
  Pass pass = replica_->pass(mode, batch, step, sums);
  if (mode == Mode::training) pass.ranks = rank_sums_.get();
  return pass;
}

StepResult PipelineStrategy::finish_step() { return count_step(queue_->finish(), *state_, clock_); }

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
  return ronda::explain_nonfinite(*replica_, communicator_, host_copy_, [&](const OnReady& on_ready) {
    StepClock clock;
    other_sums_->clear();
    stage_->begin(1, true);
    const auto pass_over = [&](const Batch& here) {
      return replica_->pass(Mode::training, here, state_->next_step(), other_sums_->there());
    };
    stage_->forward(batch, pass_over, clock);
    stage_->backward_inputs(on_ready, clock);
    stage_->backward_parameters(on_ready, clock);
    stage_->settle();
    return other_sums_->read().loss;
  });
}

const GradientExchange& PipelineStrategy::exchange() const noexcept { return *exchange_; }
TrainingState& PipelineStrategy::state() noexcept { return *state_; }
const TrainingState& PipelineStrategy::state() const noexcept { return *state_; }

std::vector<StageCosts> PipelineStrategy::stages() {
  StageCosts mine;
  mine.memory = plan_.memory.total();
  mine.computing_seconds = stage_->busy_seconds();
  mine.waiting_seconds = stage_->waited_seconds() + exchange_->exposed_seconds();
  return gather_costs(communicator_, mine, *model_, options_.micro_batches);
}

}  // namespace ronda
