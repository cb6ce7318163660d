#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/layers/layer.hpp>
#include <ronda/runtime/strategy/strategies.hpp>
#include <ronda/runtime/trainer/parameter_groups.hpp>
#include <ronda/runtime/trainer/plan_store.hpp>
#include <ronda/runtime/trainer/strategy_builder.hpp>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace ronda {
namespace {

MirroredOptions options_of(const StrategyParts& parts, const BatchPlan& plan) {
  const TrainingOptions& given = parts.setup.options;
  const bool on_processor = parts.platform.device.context->device().kind == DeviceKind::cpu;
  MirroredOptions options = MirroredOptions::for_data(parts.train, plan);
  options.initializer = given.initializer;
  options.seed = given.seed;
  options.reduce_dtype = given.reduce_dtype;
  options.clip_norm = given.clip_norm;
  options.clip_value = given.clip_value;
  options.ema_decay = given.ema_decay;
  options.check_gradients = given.on_nonfinite.has_value();
  options.fusion.algorithm = given.allreduce;
  options.fusion.compression = given.compression;
  options.fusion.seed = given.seed;
  options.strategy = given.strategy;
  options.threads = parts.setup.threads.count;
  options.memory_limit = given.memory_limit;
  options.platform = parts.platform;
  options.steps_in_flight = on_processor ? 1 : given.steps_in_flight;
  options.device_data.sets = parts.device_data;
  options.group_of = groups_of(given);
  if (given.bucket_bytes > 0) {
    options.fusion.bucket_bytes = given.bucket_bytes;
    options.fusion.first_bucket_bytes = std::min(options.fusion.first_bucket_bytes, given.bucket_bytes);
  }
  return options;
}

}  // namespace

std::unique_ptr<Strategy> build_strategy(const StrategyParts& parts, EventSink& sink) {
  const Communicator& communicator = parts.world.communicator();
  const Phase phase(communicator, Activity::planning);
  const BatchPlan plan = training_plan(parts.setup.options, data_shard(parts.setup.options, communicator), parts.train);
  PlanStore store(parts.world, parts.setup.options.plan, parts.setup.environment);
  MirroredOptions options = options_of(parts, plan);
  options.picks = store.load();
  for (const auto& damage : store.damages()) sink.on_note(damage);
  options.plan_name = store.given_name();
  if (options.plan_name.empty())
    for (const auto& [question, choice] : parts.known) options.picks.insert_or_assign(question, choice);
  std::unique_ptr<Optimizer> optimizer;
  std::optional<Schedule> rates;
  agree(communicator, [&] {
    optimizer = make_optimizer(parts.setup.options.optimizer);
    rates = schedule_of(parts.setup, plan);
  });
  if (const Message warning = warmup_warning(parts.setup, plan); !warning.empty())
    sink.on_message(Severity::warning, warning);
  std::set<std::string> held;
  const Function model([&](Value x, GraphBuilder& builder) {
    builder.hold_states([&](const std::string& state) {
      const bool holds = freezes(parts.setup.options, state);
      if (holds) held.insert(state);
      return holds;
    });
    return parts.model.build(x, builder);
  });
  agree(communicator, [&] { require_normalisable(build_graph(model, parts.train.fields(), plan.smallest())); });
  auto strategy = make_strategy({.communicator = communicator,
                                 .model = model,
                                 .loss = parts.loss,
                                 .optimizer = std::move(optimizer),
                                 .schedule = *rates,
                                 .options = std::move(options),
                                 .sink = &sink});
  std::string groups;
  agree(communicator, [&] {
    check_groups(parts.setup.options, strategy->parameters(), held);
    groups = text_of_groups(parts.setup.options, strategy->parameters());
  });
  require_equal(communicator, "the groups of parameters (" + setting("group_of") + ")", groups);
  if (const Message warning = frozen_warning(parts.setup.options, strategy->parameters()); !warning.empty())
    sink.on_message(Severity::warning, warning);
  store.keep(*strategy, sink);
  return strategy;
}

}  // namespace ronda
