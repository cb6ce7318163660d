#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/runtime/strategy/parts/make_parts_exchange.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_plan.hpp>
#include <ronda/runtime/strategy/pipeline/stage.hpp>
#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>
#include <ronda/runtime/strategy/step/part_costs.hpp>

#include <array>
#include <cstdio>
#include <span>

namespace ronda {

void require_pipelined(const MirroredOptions& options) {
  require_float32_on_processors(options, "pipeline");
  require_fitting(options.fusion.algorithm, DeviceKind::cpu);
}

void require_dense_gradients(const StagedModel& model) {
  for (std::size_t stage = 0; stage < model.stages(); ++stage)
    if (!model.plan(stage).tables().empty())
      refuse_sparse_gradient(model.plan(stage).tables().front().name, Pipeline::name);
}

StrategyPlan plan_pipeline(const MirroredOptions& options, const StagedModel& model, const Replica& replica,
                           const WholeModel& whole, const Optimizer& optimizer, std::size_t slots) {
  StrategyPlan plan;
  plan.device = options.platform.device;
  plan.batch_capacity = options.shape.batch_capacity;
  plan.outputs = model.output(model.stages() - 1).shape;
  plan.lines = model.lines();
  plan.lines.push_back(counted(model.stages(), "stage") + " of a pipeline, " +
                       counted(static_cast<std::int64_t>(options.shape.micro_batches), "micro-batch"));
  const ReplicaPlan& planned = replica.plan();
  const BufferPlan& buffers = replica.program().buffer_plan();
  plan.memory = {
      .parameters = planned.arena_bytes + whole.bytes(),
      .gradients =
          planned.arena_bytes + GradientAccumulator::bytes(planned.dense_elements(), options.shape.micro_batches),
      .optimizer = planned.elements() * sizeof(float) * optimizer.states().size() +
                   (options.ema_decay > 0 ? planned.arena_bytes + whole.bytes() : 0),
      .activations = buffers.bytes - buffers.scratch_bytes +
                     Stage::bytes(replica.program(), options.shape.fields, options.shape.batch_capacity, slots),
      .workspace = buffers.scratch_bytes};
  return plan;
}

void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, const StagedModel& model, RankGroups& ranks,
               Communicator& communicator, EventSink& sink) {
  const std::size_t stages = model.stages();
  for (Communicator* each : {&communicator, &ranks.group, &ranks.replicas})
    for (const auto& note : each->take_notes()) sink.on_message(Severity::warning, note);
  for (const auto& line : plan.lines) sink.on_detail(line);
  const std::vector<std::string> memory = communicator.gather_texts(plan.memory.text());
  const auto slots = static_cast<std::int64_t>(Stage::slots(stages, options.shape.micro_batches));
  for (std::size_t stage = 0; stage < stages; ++stage)
    sink.on_detail("stage " + std::to_string(stage) + ": " + counted(slots, "micro-batch") + " in flight; " +
                   memory[stage]);
  sink.on_note(
      "a pipeline of " + std::to_string(stages) + " stages, which begin with " +
      listed(
          model.begins(), [](const std::string& name) { return name; }, " and ") +
      (ranks.shard.count > 1 ? "; " + std::to_string(ranks.shard.count) + " such pipelines share each step" : ""));
  if (options.shape.micro_batches >= stages) return;
  const std::string share = formatted("%.0f %%", 100 * predicted_bubble(stages, options.shape.micro_batches));
  sink.on_message(Severity::warning, "ranks of the pipeline will wait for " + share + " of each step: give " +
                                         setting("accumulate") +
                                         " several times as many micro-batches as there are stages");
}

std::vector<StageCosts> gather_costs(Communicator& all, const StageCosts& mine, const StagedModel& model,
                                     std::size_t micro_batches) {
  const auto ranks = static_cast<std::size_t>(all.size());
  std::array numbers{mine.computing_seconds, mine.waiting_seconds, static_cast<double>(mine.memory)};
  std::vector<double> gathered(numbers.size() * ranks);
  all.allgather(Tensor(std::span(numbers)), Tensor(std::span(gathered)));
  std::vector<StageCosts> stages(model.stages());
  const double pipelines = static_cast<double>(ranks) / static_cast<double>(stages.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    StageCosts& stage = stages[rank % stages.size()];
    const double* of_rank = &gathered[numbers.size() * rank];
    stage.computing_seconds += of_rank[0] / pipelines;
    stage.waiting_seconds += of_rank[1] / pipelines;
    stage.memory = static_cast<std::uint64_t>(of_rank[2]);
  }
  const std::vector<std::string> begins = model.begins();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].begins = begins[i];
    for (const ParameterRequest& request : model.plan(i).requests)
      stages[i].parameters += static_cast<std::uint64_t>(request.desc.count());
    stages[i].predicted_bubble = predicted_bubble(stages.size(), micro_batches);
  }
  return stages;
}

}  // namespace ronda
