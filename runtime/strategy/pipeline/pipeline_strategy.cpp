#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/parts/make_parts_exchange.hpp>
#include <ronda/runtime/strategy/parts/parts_exchange.hpp>
#include <ronda/runtime/strategy/parts/parts_state.hpp>
#include <ronda/runtime/strategy/parts/whole_model.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_plan.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>
#include <ronda/runtime/strategy/step/step_runner.hpp>

#include <utility>

namespace ronda {

// ---- what it is made of ---------------------------------------------------------------------------------------------

PipelineStrategy::PipelineStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule,
                                   const MirroredOptions& options, EventSink* sink)
    : Strategy(std::move(communicator), std::move(optimizer), options, sink),
      stage_count_(options_.strategy.or_default<Pipeline>().stages_on(static_cast<std::size_t>(communicator_.size()))),
      ranks_(communicator_, stage_count_) {
  shard_ = test_shard_ = ranks_.shard;
  agree(communicator_, [&] { use_threads(options_.threads); });
  agree(communicator_, [&] { require_pipelined(options_); });
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  plan_stages(model, loss, picker);
  agree(communicator_, [&] { make_replica(loss, picker.answered()); });
  check_memory();
  agree(communicator_,
        [&] { replica_->take_memory(optimizer_->states().size(), std::nullopt, options_.ema_decay > 0); });
  std::unique_ptr<PartsExchange> exchange;
  std::unique_ptr<PlannedRankSums> rank_sums;
  agree_on_groups(communicator_, [&] {
    Buffer values = allocate_arena(ArenaPlace::values, replica_->plan().arena_bytes, *device().context);
    exchange = make_parts_exchange(ranks_, *replica_, std::move(values), options_.fusion);
    rank_sums = make_rank_sums(ranks_.replicas, replica_->program());
  });
  agree(communicator_, [&] {
    SumOverParts& over_stages = *exchange;
    run_by(make_runner(std::move(exchange), std::move(rank_sums), over_stages, schedule));
    stage_ = std::make_unique<Stage>(
        Stage::Parts{ranks_.group, *replica_, std::move(more_), options_.shape.fields, options_.shape.batch_capacity});
  });
  for (auto& line : describe_sums(communicator_, ranks_, runner().exchange(), "stage"))
    plan_.lines.push_back(std::move(line));
  plan_.memory.exchange = runner().exchange().report().memory;
  check_memory();
  plan_.picks = picker.answered();
  for (const auto& [question, answer] : model_->chosen()) plan_.picks.insert_or_assign(question, answer);
  plan_.timed_something = picker.timed_something() || model_->measured();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] { whole_->initialize(options_.initializer, options_.seed); });
  state().restart_average();
  tell_plan(plan_, options_, *model_, ranks_, communicator_, sink_);
}

PipelineStrategy::~PipelineStrategy() = default;

void PipelineStrategy::plan_stages(const Layer& model, const Loss& loss, RankPicker& picker) {
  const StageRequest request{.model = model,
                             .loss = loss,
                             .primitives = *options_.platform.primitives,
                             .stream = *options_.platform.device.stream,
                             .fields = options_.shape.fields,
                             .rows = options_.shape.batch_capacity,
                             .micro_batches = options_.shape.micro_batches,
                             .optimizer_states = optimizer_->states().size(),
                             .seed = options_.seed,
                             .plan_name = options_.plan_name};
  model_ = std::make_unique<StagedModel>(request, options_.strategy.or_default<Pipeline>(), stage_count_, picker,
                                         communicator_);
  agree(communicator_, [&] { require_dense_gradients(*model_); });
}

void PipelineStrategy::make_replica(const Loss& loss, const Picks& answered) {
  replica_ = std::make_unique<Replica>(model_->take_program(ranks_.part), options_.platform.device,
                                       options_.platform.primitives, options_.shape.global_batch, options_.seed);
  const bool last = ranks_.part + 1 == stage_count_;
  while (more_.size() + 1 < Stage::slots(stage_count_, options_.shape.micro_batches))
    more_.push_back(plan_again(model_->graph(ranks_.part), last ? &loss : nullptr, *options_.platform.primitives,
                               answered, options_of_stage(ranks_.part)));
  whole_ = std::make_unique<WholeModel>(model_->partition(), ranks_.part, options_.ema_decay > 0);
  plan_ = plan_pipeline(options_, *model_, *replica_, *whole_, *optimizer_, more_.size() + 1);
}

std::unique_ptr<StepRunner> PipelineStrategy::make_runner(std::unique_ptr<GradientExchange> exchange,
                                                          std::unique_ptr<PlannedRankSums> rank_sums,
                                                          SumOverParts& over_stages, const Schedule& schedule) {
  replica_->bind();
  whole_->bind(*replica_);
  return std::make_unique<StepRunner>(StepRunner::Parts{.communicator = communicator_,
                                                        .computation = *this,
                                                        .replica = *replica_,
                                                        .optimizer = *optimizer_,
                                                        .exchange = std::move(exchange),
                                                        .rank_sums = std::move(rank_sums),
                                                        .over_parts = &over_stages,
                                                        .computing = shard_of(communicator_)},
                                      options_, schedule, [&](const TrainingState::Parts& parts) {
                                        return std::make_unique<PartsState>(parts, ranks_, *whole_, ranks_.replicas,
                                                                            options_.group_of);
                                      });
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void PipelineStrategy::require_micro_batches(std::size_t count) const {
  if (count != options_.shape.micro_batches) refuse_other_micro_batches("all stages of a pipeline");
}

/// One micro-batch goes in, and as many halves of backward follow as the schedule has at this place. After the last one
/// the gradients are complete.
void PipelineStrategy::compute(const Batch& given) {
  if (runner().queue().micro_batch() == 0) stage_->begin(runner().queue().micro_batches(), true);
  StepClock& clock = runner().clock();
  stage_->forward(
      given, [&](const Batch& here) { return runner().training_pass(here); }, clock);
  while (stage_->inputs_are_due()) {
    stage_->backward_inputs(runner().listen(stage_->inputs_done()), clock);
    while (stage_->parameters_are_due()) stage_->backward_parameters(runner().listen(stage_->parameters_done()), clock);
  }
}

/// The same error on all ranks of a pipeline, which have the same batch.
void PipelineStrategy::check(const Batch& batch) const {
  const Graph& graph = model_->whole();
  for (const GraphInput& input : graph.inputs) {
    const Value& value = graph.values[input.value];
    require_planned({value.shape, value.dtype, {}}, batch.field(input.field).desc());
  }
}

// ---- between steps --------------------------------------------------------------------------------------------------

Outputs PipelineStrategy::evaluate_batch(const Batch& given, StepControl* sums) {
  if (const std::size_t batches = std::exchange(to_evaluate_, 0); batches > 0) stage_->begin(batches, false);
  StepClock unread;
  const auto pass_over = [&](const Batch& here) { return replica_->pass(Mode::evaluation, here, updates(), sums); };
  const Tensor& outputs = stage_->forward(given, pass_over, unread);
  return {given, stage_->last() ? &outputs : nullptr};
}

void PipelineStrategy::end_evaluation() { stage_->settle(); }

std::optional<double> PipelineStrategy::compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) {
  StepClock unread;
  sums.clear();
  stage_->begin(1, true);
  const auto pass_over = [&](const Batch& here) {
    return replica_->pass(Mode::training, here, state().next_step(), sums.there());
  };
  stage_->forward(given, pass_over, unread);
  stage_->backward_inputs(on_ready, unread);
  stage_->backward_parameters(on_ready, unread);
  stage_->settle();
  return sums.read().loss;
}

std::vector<StageCosts> PipelineStrategy::stages() {
  StageCosts mine;
  mine.memory = plan_.memory.total();
  mine.computing_seconds = stage_->busy_seconds();
  mine.waiting_seconds = stage_->waited_seconds() + runner().exchange().exposed_seconds();
  return gather_costs(communicator_, mine, *model_, options_.shape.micro_batches);
}

}  // namespace ronda
