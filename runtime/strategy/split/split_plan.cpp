// How a split model is planned and takes its memory; split_strategy.cpp has its steps.
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/replica/cost_table.hpp>
#include <ronda/runtime/strategy/parts/make_parts_exchange.hpp>
#include <ronda/runtime/strategy/parts/parts_exchange.hpp>
#include <ronda/runtime/strategy/parts/parts_state.hpp>
#include <ronda/runtime/strategy/parts/whole_model.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>
#include <ronda/runtime/strategy/step/replica_updater.hpp>
#include <ronda/runtime/strategy/split/planned_part_exchange.hpp>
#include <ronda/runtime/strategy/split/split_model.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>
#include <ronda/runtime/strategy/step/step_runner.hpp>

#include <optional>
#include <utility>

namespace ronda {
namespace {

void require_splittable(const MirroredOptions& options, const Optimizer& optimizer) {
  require_float32_on_processors(options, "split");
  if (optimizer.has_two_passes() || optimizer.needs_norms() || optimizer.on_processor_alone())
    refuse_update_of_whole(optimizer, Split::name, "a rank has parts of them");
  require_fitting(options.fusion.algorithm, DeviceKind::cpu);
}

/// What ranks of a group have alike counts in the gradients' norm once: on the first.
std::function<ParameterGroup(std::string_view)> counted_once(const SplitModel& model, std::size_t part,
                                                             std::function<ParameterGroup(std::string_view)> group_of) {
  return [&model, part, group_of = std::move(group_of)](std::string_view name) {
    ParameterGroup group = group_of ? group_of(name) : ParameterGroup{};
    group.counted = part == 0 || !model.everywhere(name);
    return group;
  };
}

/// What the ranks of each group tell each other in a pass. Collective.
std::vector<std::string> describe_parts(Communicator& all, const RankGroups& ranks, const PlannedPartExchange& parts) {
  const auto texts = all.gather_texts(listed(
      parts.describe(), [](const std::string& line) { return line; }, ", "));
  std::vector<std::string> lines;
  for (std::size_t group = 0; group < ranks.shard.count; ++group)
    lines.push_back("group " + std::to_string(group) + " in a pass: " + texts[group * ranks.parts]);
  return lines;
}

}  // namespace

SplitStrategy::SplitStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                             std::unique_ptr<Optimizer> optimizer, Schedule schedule, const MirroredOptions& options,
                             EventSink* sink)
    : Strategy(std::move(communicator), std::move(optimizer), options, sink),
      ranks_(communicator_,
             options_.strategy.or_default<Split>().parts_on(static_cast<std::size_t>(communicator_.size()))) {
  shard_ = test_shard_ = ranks_.shard;
  agree(communicator_, [&] { use_threads(options_.threads); });
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  agree(communicator_, [&] {
    require_splittable(options_, *optimizer_);
    model_ = std::make_unique<SplitModel>(build_graph(model, options_.shape.fields, options_.shape.batch_capacity),
                                          loss, *options_.platform.primitives, picker,
                                          options_.strategy.or_default<Split>(), ranks_.parts);
    make_replica();
  });
  check_memory();
  agree(communicator_,
        [&] { replica_->take_memory(optimizer_->states().size(), std::nullopt, options_.ema_decay > 0); });
  std::unique_ptr<PartsExchange> exchange;
  std::unique_ptr<PlannedRankSums> rank_sums;
  agree_on_groups(communicator_, [&] {
    exchange = make_exchange();
    rank_sums = make_rank_sums(ranks_.replicas, replica_->program());
  });
  PartsExchange& sums = *exchange;
  agree(communicator_, [&] { run_by(make_runner(std::move(exchange), std::move(rank_sums), sums, schedule)); });
  agree_on_groups(communicator_, [&] { keep_alike(sums); });
  for (auto& line : describe_sums(communicator_, ranks_, sums, "part")) plan_.lines.push_back(std::move(line));
  if (parts_ != nullptr)
    for (auto& line : describe_parts(communicator_, ranks_, *parts_)) plan_.lines.push_back(std::move(line));
  plan_.memory.exchange = sums.report().memory + (parts_ != nullptr ? parts_->memory() : 0);
  check_memory();
  plan_.picks = picker.answered();
  plan_.timed_something = picker.timed_something();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] { whole_->initialize(options_.initializer, options_.seed); });
  state().restart_average();
  tell_plan();
}

SplitStrategy::~SplitStrategy() = default;

void SplitStrategy::make_replica() {
  replica_ = std::make_unique<Replica>(model_->take_program(ranks_.part), options_.platform.device,
                                       options_.platform.primitives, options_.shape.global_batch, options_.seed);
  const bool averages = options_.ema_decay > 0;
  whole_ = std::make_unique<WholeModel>(model_->partition(), ranks_.part, averages);
  const ReplicaPlan& planned = replica_->plan();
  const BufferPlan& buffers = replica_->program().buffer_plan();
  plan_.device = options_.platform.device;
  plan_.batch_capacity = options_.shape.batch_capacity;
  plan_.outputs = replica_->program().output().shape;
  plan_.lines = model_->lines();
  plan_.memory = {.parameters = planned.arena_bytes + whole_->bytes(),
                  .gradients = planned.arena_bytes +
                               GradientAccumulator::bytes(planned.dense_elements(), options_.shape.micro_batches),
                  .optimizer = planned.elements() * sizeof(float) * (optimizer_->states().size() + (averages ? 1 : 0)) +
                               (averages ? whole_->bytes() : 0),
                  .activations = buffers.bytes - buffers.scratch_bytes,
                  .workspace = buffers.scratch_bytes};
}

/// Collective over the ranks that have the same part, and over those of a group.
std::unique_ptr<PartsExchange> SplitStrategy::make_exchange() {
  Buffer values = allocate_arena(ArenaPlace::values, replica_->plan().arena_bytes, *options_.platform.device.context);
  auto exchange = make_parts_exchange(ranks_, *replica_, std::move(values), options_.fusion);
  const std::vector<PartMessages> messages = replica_->program().part_messages();
  if (ranks_.parts > 1 && !messages.empty()) parts_ = std::make_unique<PlannedPartExchange>(ranks_.group, messages);
  return exchange;
}

/// Collective over the ranks of a group. With one group no gradient is summed.
void SplitStrategy::keep_alike(PartsExchange& exchange) {
  if (ranks_.shard.count == 1) return;
  std::vector<Tensor> alike;
  for (const Parameter& parameter : replica_->parameters())
    if (model_->everywhere(parameter.name)) alike.push_back(parameter.gradient);
  exchange.keep_alike(std::move(alike));
}

std::unique_ptr<StepRunner> SplitStrategy::make_runner(std::unique_ptr<GradientExchange> exchange,
                                                       std::unique_ptr<PlannedRankSums> rank_sums,
                                                       SumOverParts& over_parts, const Schedule& schedule) {
  replica_->bind();
  whole_->bind(*replica_);
  MirroredOptions of_part = options_;
  of_part.group_of = counted_once(*model_, ranks_.part, options_.group_of);
  return std::make_unique<StepRunner>(StepRunner::Parts{.communicator = communicator_,
                                                        .computation = *this,
                                                        .replica = *replica_,
                                                        .optimizer = *optimizer_,
                                                        .exchange = std::move(exchange),
                                                        .rank_sums = std::move(rank_sums),
                                                        .over_parts = &over_parts,
                                                        .computing = shard_of(communicator_)},
                                      of_part, schedule, [&](const TrainingState::Parts& parts) {
                                        // Checkpoints of other strategies give each rank of a group its own layer
                                        // states.
                                        return std::make_unique<PartsState>(parts, ranks_, *whole_, communicator_,
                                                                            options_.group_of);
                                      });
}

void SplitStrategy::tell_plan() {
  for (Communicator* each : {&communicator_, &ranks_.group, &ranks_.replicas})
    for (const auto& note : each->take_notes()) sink_.on_message(Severity::warning, note);
  for (const auto& reason : model_->reasons()) sink_.on_detail("splitting " + reason);
  for (const auto& line : plan_.lines) sink_.on_detail(line);
  sink_.on_detail(plan_.memory.text());
  if (ranks_.parts > 1)
    sink_.on_note(
        counted(static_cast<std::int64_t>(ranks_.parts), "rank") + " split " + text_of(model_->choices()) +
        (ranks_.shard.count > 1 ? "; " + std::to_string(ranks_.shard.count) + " such groups share each step" : ""));
  if (!sink_.wants_details()) return;
  const FlushDenormals flushing = runner().flush_denormals();
  for (const auto& line : cost_table(replica_->measure(options_.shape.fields)))
    sink_.on_detail(line);  // of this part alone
}

}  // namespace ronda
