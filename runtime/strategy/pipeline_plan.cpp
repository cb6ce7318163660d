// How a pipeline is planned and takes its memory; pipeline_strategy.cpp has its steps.
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/listed.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_state.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>
#include <ronda/runtime/strategy/pipeline/stage_exchange.hpp>
#include <ronda/runtime/strategy/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/replica_updater.hpp>

#include <cstdio>
#include <exception>
#include <utility>

namespace ronda {
namespace {

/// `work` is collective over some of the ranks, which throw together: then all ranks throw.
template <class Work>
void agree_on_groups(const Communicator& all, Work&& work) {
  std::exception_ptr error;
  try {
    work();
  } catch (...) {
    error = std::current_exception();
  }
  agree(all, [&] {
    if (error) std::rethrow_exception(error);
  });
}

void require_possible(const MirroredOptions& options) {
  if (options.platform.device.context->device().kind != DeviceKind::cpu)
    throw InputError(".strategy = pipeline is for processors; take .device = cpu, or .strategy = mirrored");
  if (options.platform.primitives->dtype() != DType::float32)
    throw InputError(".strategy = pipeline computes in float32; take .precision = float32, or .strategy = mirrored");
  if (options.divide_states || options.one_copy || options.servers > 0 || options.local_sgd)
    throw InputError(
        "a pipeline's ranks have the optimizer's states of their stage and make steps together: give .pipeline without "
        ".divide_states, .one_copy, .servers and .local_sgd");
  require_fitting(options.fusion.algorithm, DeviceKind::cpu);
}

std::size_t rank_of(const Communicator& communicator) { return static_cast<std::size_t>(communicator.rank()); }
std::size_t size_of(const Communicator& communicator) { return static_cast<std::size_t>(communicator.size()); }

}  // namespace

PipelineStrategy::PipelineStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule,
                                   const MirroredOptions& options, EventSink* sink)
    : communicator_(std::move(communicator)),
      sink_(sink != nullptr ? *sink : silence_),
      options_(options.completed()),
      stage_count_(options_.pipeline.stages_on(size_of(communicator_))),
      index_(rank_of(communicator_) % stage_count_),
      shard_(options_.pipeline.shard(rank_of(communicator_), size_of(communicator_))),
      pipeline_(communicator_.split(static_cast<int>(shard_.index), static_cast<int>(index_))),
      replicas_(communicator_.split(static_cast<int>(index_), static_cast<int>(shard_.index))),
      optimizer_(std::move(optimizer)),
      host_copy_(options_.platform.device) {
  use_threads(options_.threads);
  agree(communicator_, [&] { require_possible(options_); });
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  plan_stages(model, loss, picker);
  agree(communicator_, [&] { make_replica(loss, picker.answered()); });
  check_memory();
  agree(communicator_, [&] { take_memory(); });
  agree_on_groups(communicator_, [&] { make_exchange(); });
  agree(communicator_, [&] { make_parts(schedule); });
  describe_exchanges();
  plan_.memory.exchange = exchange_->memory();
  check_memory();
  plan_.picks = picker.answered();
  for (const auto& [question, answer] : model_->chosen()) plan_.picks.insert_or_assign(question, answer);
  plan_.timed_something = picker.timed_something() || model_->measured();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] { replica_->initialize(options_.initializer, options_.seed); });
  whole_->gather(pipeline_);
  whole_->restart_average();
  tell_plan();
}

PipelineStrategy::~PipelineStrategy() = default;

void PipelineStrategy::plan_stages(const Layer& model, const Loss& loss, RankPicker& picker) {
  const StageRequest request{.model = model,
                             .loss = loss,
                             .primitives = *options_.platform.primitives,
                             .stream = *options_.platform.device.stream,
                             .fields = options_.fields,
                             .rows = options_.batch_capacity,
                             .seed = options_.seed,
                             .plan_name = options_.plan_name};
  model_ = std::make_unique<StagedModel>(request, options_.pipeline, stage_count_, picker, communicator_);
  agree(communicator_, [&] {
    for (std::size_t stage = 0; stage < stage_count_; ++stage)
      if (!model_->plan(stage).tables().empty())
        throw InputError("the gradient of " + model_->plan(stage).tables().front().name +
                         " is sparse, and .strategy = pipeline sums whole ones; make the embedding with .sparse = "
                         "false, or take .strategy = mirrored");
  });
  plan_.device = options_.platform.device;
  plan_.batch_capacity = options_.batch_capacity;
  plan_.outputs = model_->output(stage_count_ - 1).shape;
  plan_.lines = model_->lines();
  plan_.lines.push_back(counted(stage_count_, "stage") + " of a pipeline, " +
                        counted(static_cast<std::int64_t>(options_.micro_batches), "micro-batch"));
}

void PipelineStrategy::make_replica(const Loss& loss, const Picks& answered) {
  replica_ = std::make_unique<Replica>(model_->take_program(index_), options_.platform.device,
                                       options_.platform.primitives, options_.global_batch, options_.seed);
  const bool last = index_ + 1 == stage_count_;
  while (more_.size() + 1 < Stage::slots(index_, stage_count_, options_.micro_batches))
    more_.push_back(
        plan_again(model_->graph(index_), last ? &loss : nullptr, *options_.platform.primitives, answered, index_ > 0));
  whole_ = std::make_unique<WholeModel>(*model_, index_, options_.platform.device, options_.ema_decay > 0);
  plan_memory();
}

void PipelineStrategy::plan_memory() {
  const ReplicaPlan& planned = replica_->plan();
  const BufferPlan& buffers = replica_->program().buffer_plan();
  plan_.memory = {
      .parameters = whole_->bytes(),
      .gradients = planned.arena_bytes + GradientAccumulator::bytes(planned.dense_elements(), options_.micro_batches),
      .optimizer = planned.elements() * sizeof(float) * optimizer_->states().size() +
                   (options_.ema_decay > 0 ? whole_->bytes() : 0),
      .activations = buffers.bytes - buffers.scratch_bytes +
                     Stage::bytes(replica_->program(), options_.fields, options_.batch_capacity, more_.size() + 1),
      .workspace = buffers.scratch_bytes};
}

void PipelineStrategy::check_memory() const {
  agree(communicator_, [&] {
    check_memory_limit(plan_.memory, options_.memory_limit, options_.batch_capacity, options_.micro_batches);
  });
}

void PipelineStrategy::take_memory() { replica_->take_memory(optimizer_->states().size(), std::nullopt, false); }

/// Collective over the ranks of a stage, and over those of a pipeline.
void PipelineStrategy::make_exchange() {
  const ReplicaPlan& planned = replica_->plan();
  replica_->take_arenas(whole_->values_of_mine(), replicas_.allocate(planned.arena_bytes, Memory::node_shared), {});
  FusionOptions fusion = options_.fusion;
  fusion.dtype = DType::float32;
  exchange_ = std::make_unique<StageExchange>(
      pipeline_, std::make_unique<BucketedAllreduce>(replicas_, planned.slots, replica_->reduced(),
                                                     replica_->dense_arena(), fusion));
  const std::vector<std::size_t> counts = replica_->program().rank_sums();
  if (replicas_.size() > 1 && !counts.empty()) rank_sums_ = std::make_unique<PlannedRankSums>(replicas_, counts);
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
      device, communicator_, {&exchange_->sums(), updater_->outcome()},
      {.fields = options_.fields, .rows = options_.batch_capacity, .micro_batches = options_.micro_batches});
  state_ = std::make_unique<PipelineState>(
      TrainingState::Parts{
          communicator_, *replica_, *optimizer_, *updater_, *exchange_, *queue_, {}, shard_of(communicator_)},
      PipelineState::Ranks{pipeline_, replicas_}, *model_, *whole_);
  stage_ = std::make_unique<Stage>(
      Stage::Parts{pipeline_, *replica_, std::move(more_), options_.fields, options_.batch_capacity});
}

/// Bits depend on how the ranks of a stage sum their gradients.
void PipelineStrategy::describe_exchanges() {
  if (shard_.count == 1) return;
  std::string mine;
  for (const auto& line : exchange_->describe()) mine += (mine.empty() ? "" : "; ") + line;
  const auto all = communicator_.gather_texts(mine);
  for (std::size_t stage = 0; stage < stage_count_; ++stage)
    plan_.lines.push_back("stage " + std::to_string(stage) + " sums " + all[stage]);
}

void PipelineStrategy::tell_plan() {
  for (Communicator* each : {&communicator_, &pipeline_, &replicas_})
    for (const auto& note : each->take_notes()) sink_.on_warning(note);
  for (const auto& line : plan_.lines) sink_.on_detail(line);
  const std::vector<std::string> memory = communicator_.gather_texts(plan_.memory.text());
  for (std::size_t stage = 0; stage < stage_count_; ++stage)
    sink_.on_detail(
        "stage " + std::to_string(stage) + ": " +
        counted(static_cast<std::int64_t>(Stage::slots(stage, stage_count_, options_.micro_batches)), "micro-batch") +
        " in flight; " + memory[stage]);
  sink_.on_note("a pipeline of " + std::to_string(stage_count_) + " stages, which begin with " +
                listed(
                    model_->begins(), [](const std::string& name) { return name; }, " and ") +
                (shard_.count > 1 ? "; " + std::to_string(shard_.count) + " such pipelines share each step" : ""));
  const std::size_t few = stage_count_;
  if (options_.micro_batches >= few) return;
  char share[32];
  std::snprintf(share, sizeof share, "%.0f %%",
                100.0 * static_cast<double>(few - 1) / static_cast<double>(options_.micro_batches + few - 1));
  sink_.on_warning(std::string("ranks of the pipeline will wait for ") + share +
                   " of each step: give .accumulate several times as many micro-batches as there are stages");
}

}  // namespace ronda
