#include <ronda/collectives/phase.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/core/text.hpp>
#include <ronda/data/dataset_part.hpp>
#include <ronda/runtime/checkpoint/faults.hpp>
#include <ronda/runtime/trainer/binding.hpp>
#include <ronda/runtime/trainer/cluster_roles.hpp>
#include <ronda/runtime/trainer/device_choice.hpp>
#include <ronda/runtime/trainer/file_sinks.hpp>
#include <ronda/runtime/trainer/going_on.hpp>
#include <ronda/runtime/trainer/hooks/audit.hpp>
#include <ronda/runtime/trainer/hooks/best_epoch.hpp>
#include <ronda/runtime/trainer/hooks/callbacks.hpp>
#include <ronda/runtime/trainer/hooks/plateau.hpp>
#include <ronda/runtime/trainer/hooks/injected_faults.hpp>
#include <ronda/runtime/trainer/hooks/leave_unsaved.hpp>
#include <ronda/runtime/trainer/hooks/nonfinite_guard.hpp>
#include <ronda/runtime/trainer/hooks/pruning.hpp>
#include <ronda/runtime/trainer/hooks/reporting.hpp>
#include <ronda/runtime/trainer/hooks/results.hpp>
#include <ronda/runtime/trainer/hooks/saving.hpp>
#include <ronda/runtime/trainer/hooks/shares.hpp>
#include <ronda/runtime/trainer/hooks/target_loss.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/resumption.hpp>
#include <ronda/runtime/trainer/spoiled_loss.hpp>
#include <ronda/runtime/trainer/strategy_builder.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace ronda {
namespace {

/// The model is planned for training data, and tested with it.
void check_fields(const Dataset& train, const Dataset& test) {
  const auto text = [](const Field& field) { return std::string(name_of(field.dtype)) + " " + field.shape.text(); };
  for (const Field& field : train.fields()) {
    const auto found = std::ranges::find(test.fields(), field.name, &Field::name);
    if (found == test.fields().end()) throw InputError("the test data has no field '" + field.name + "'");
    if (text(*found) != text(field))
      throw InputError("the test data's '" + field.name + "' is " + text(*found) + ", the training data's " +
                       text(field));
  }
}

/// A warning if the images' channels seem to come first, as in PyTorch; otherwise empty.
std::string order_warning(const Dataset& data) {
  const auto input = std::ranges::find(data.fields(), "input", &Field::name);
  if (input == data.fields().end() || input->shape.rank() != 3) return {};
  const Shape& shape = input->shape;
  constexpr std::int64_t most_channels = 4;
  if ((shape[0] != 1 && shape[0] != 3) || shape[1] <= most_channels || shape[2] <= most_channels) return {};
  return "the samples' input is " + shape.text() +
         ", which is read as (height, width, channels): " + counted(shape[0], "row") + " of " +
         std::to_string(shape[2]) +
         " channels; images whose channels come first are turned by NumPy's x.transpose(0, 2, 3, 1)";
}

void check_without_tests(const TrainingOptions& options) {
  if (options.early_stopping > 0 || options.target_loss || options.keep_best || options.reduce_rate_after > 0)
    throw InputError(
        "early_stopping, target_loss, keep_best and reduce_rate_after watch the loss of each epoch's test, and there "
        "is no test data; give some, or a validation_split");
}

/// `2 threads each`, `1 to 2 threads each`.
std::string text_of_each(const std::vector<int>& threads_of_ranks) {
  const auto [least, most] = std::ranges::minmax(threads_of_ranks);
  return (least < most ? std::to_string(least) + " to " : "") + counted(most, "thread") + " each";
}

std::string first_line(const World& world, const TrainingSetup& setup, DeviceContext& device, std::size_t samples) {
  const Device place = device.device();
  const int servers = servers_of(setup.options);
  const StrategyOptions& strategy = setup.options.strategy;
  const bool in_parts = strategy.as<Pipeline>() != nullptr || strategy.as<Split>() != nullptr;
  const std::string rank = in_parts ? "rank" : "replica";
  const std::string ranks = servers == 0
                                ? counted(world.size(), rank)
                                : counted(world.size() - servers, "worker") + " and " + counted(servers, "server");
  return setup.options.application + ": " + ranks + " on " + counted(world.communicator().topology().nodes, "host") +
         ", " +
         (place.kind == DeviceKind::cpu ? "cpu with " + text_of_each(setup.threads_of_ranks)
                                        : place.text() + ", " + device.name()) +
         "; " + counted(static_cast<std::int64_t>(samples), "sample") + ", " +
         std::to_string(setup.options.global_batch_size) + " a step, " + counted(setup.epochs, "epoch") + ", " +
         counted(setup.total_steps, "step");
}

/// Calls a function where a block ends, by whatever way.
template <class Work>
class AtEnd {
 public:
  explicit AtEnd(Work work) : work_(std::move(work)) {}
  AtEnd(const AtEnd&) = delete;
  ~AtEnd() { work_(); }

 private:
  Work work_;
};

/// Called last: throws ResourceError, agreed, that names each missing result.
void require_written(const Results& results, const Saving* saving) {
  std::vector<Message> failures = results.failures();
  if (const Message failure = saving == nullptr ? Message() : saving->failure(); !failure.empty())
    failures.push_back(failure);
  if (failures.empty()) return;
  Message text = "the training is done, but ";
  for (const Message& failure : failures) text += (&failure == &failures.front() ? "" : "; ") + failure;
  throw as_agreed(ResourceError(text));
}

/// Has no samples.
class NoData final : public Dataset {
 public:
  [[nodiscard]] std::size_t size() const override { return 0; }
  [[nodiscard]] std::span<const Field> fields() const override { return {}; }
  void read(const SampleRequest&, Batch&) const override {}
};

}  // namespace

Trainer::Trainer(World& world, const Layer& model, const Loss& loss, TrainingOptions options, EventSink* sink)
    : world_(world), model_(model), loss_(loss), options_(std::move(options)) {
  sink_.add(statistics_);
  if (sink != nullptr && world.rank() == 0) sink_.add(*sink);
}

Trainer::~Trainer() = default;

void Trainer::add(std::unique_ptr<Hook> hook) {
  add(*hook);
  owned_hooks_.push_back(std::move(hook));
}

void Trainer::add(Callbacks callbacks) { add(std::make_unique<CallbackHook>(std::move(callbacks))); }

Evaluation Trainer::fit(const Dataset& train) { return fit(train, NoData()); }

Evaluation Trainer::fit(const Dataset& train, const Dataset& test) {
  const AtEnd let_go([this] {
    if (strategy_) strategy_->forget_data();
    asked_to_stop_ = false;
  });
  const NoData nothing;
  require_equal(world_.communicator(), setting("validation_split"), std::to_string(options_.validation_split));
  if (options_.validation_split == 0) return fit_on({train, nothing, test});
  std::optional<DatasetPart> rest, kept;
  agree(world_.communicator(), [&] {
    ValidationSplit split = split_for_validation(train.size(), options_.validation_split, options_.seed);
    rest.emplace(train, std::move(split.training));
    kept.emplace(train, std::move(split.validation));
  });
  return fit_on({*rest, *kept, test});
}

Evaluation Trainer::fit_on(const FitData& data) {
  TrainingSetup setup = prepare(data);
  choose_platform(setup);
  sink_.on_note(first_line(world_, setup, *platform_.device.context, data.train.size()));
  if (const std::string warning = order_warning(data.train); !warning.empty()) sink_.on_warning(warning);
  tell_binding(world_, setup.threads, text_of_threads(setup.threads_of_ranks), sink_);
  std::optional<Saving> saving;
  if (!setup.options.checkpoint_dir.empty()) saving.emplace(world_.communicator(), setup.options, sink_);
  left_ = saving && saving->leaves_at_once();
  if (left_) return {};
  const std::optional<Resumption> resumption = find_checkpoint(world_.communicator(), setup.options, sink_);
  agree(world_.communicator(), [&] {
    if (resumption) check_changes(*resumption, setup.options_that_matter, setup.options, sink_);
  });
  open_files(setup.options);
  std::vector<const Dataset*> device_data{&data.train};
  for (const Dataset* each : {&data.validation, &data.test})
    if (each->size() > 0) device_data.push_back(each);
  if (strategy_)
    build_on(setup, data.train, device_data);
  else
    build(setup, resumption, data.train, device_data);
  return run(setup, saving ? &*saving : nullptr, data);
}

TrainingSetup Trainer::prepare(const FitData& data) {
  TrainingSetup setup;
  const auto own = world_.communicator().gather_texts(own_task_hosts(options_, world_.communicator().topology().hosts));
  agree(world_.communicator(), [&] {
    if (data.test.size() > 0) check_fields(data.train, data.test);
    if (data.test.size() + data.validation.size() == 0) check_without_tests(options_);
    if (left_) throw LogicError("fit was called again for a training that was preempted; another run goes on with it");
    if (strategy_ && !options_.checkpoint_dir.empty())
      throw InputError(
          "checkpoint_dir: a training that is saved is one call of fit; give it all its epochs, or no checkpoint_dir");
    setup = complete(options_, world_, data.train, progress_.step, progress_.history.size(), own);
  });
  require_equal_on_ranks(setup, world_.communicator(), data.test);
  for (const auto& threads : world_.communicator().gather_texts(std::to_string(setup.threads.count)))
    setup.threads_of_ranks.push_back(std::stoi(threads));
  return setup;
}

/// Called after the checkpoints' folder is locked: the lock waits for a run that is about to end.
void Trainer::open_files(const TrainingOptions& options) {
  agree(world_.communicator(), [&] {
    if (world_.rank() != 0 || strategy_) return;
    files_ = open_file_sinks(options, sink_);
    for (const auto& file : files_) sink_.add(*file);
  });
}

void Trainer::choose_platform(TrainingSetup& setup) {
  ComputeDevice& device = platform_.device;
  if (!device.context) device = choose_device(world_.communicator(), setup.options, setup.threads.count, sink_);
  if (device.context->device().kind != DeviceKind::cpu) {
    setup.threads.note = {};  // a GPU computes
    agree(world_.communicator(), [&] { require_for_gpus(setup.options); });
  } else
    agree(world_.communicator(), [&] { require_for_processor(setup.options); });
}

void Trainer::build(TrainingSetup& setup, const std::optional<Resumption>& resumption, const Dataset& train,
                    const std::vector<const Dataset*>& device_data) {
  const ComputeDevice& device = platform_.device;
  if (!platform_.primitives)
    platform_.primitives = platform_row(device.context->device().kind)
                               .primitives(device, {.threads = setup.threads.count,
                                                    .dtype = dtype_of_layers(setup.options.precision),
                                                    .engines = engine_rules(setup.options)});
  setup.environment = environment_of(world_, *platform_.primitives, setup.threads_of_ranks);
  const bool spoils =
      std::ranges::any_of(setup.options.faults, [](const Fault& f) { return f.kind == FaultKind::flip_gradient; });
  if (spoils) spoiled_loss_ = std::make_unique<SpoiledLoss>(loss_, Faults(setup.options.faults, world_.rank()));
  strategy_ = build_strategy({.world = world_,
                              .model = model_,
                              .loss = spoiled_loss_ ? *spoiled_loss_ : loss_,
                              .platform = platform_,
                              .setup = setup,
                              .train = train,
                              .device_data = device_data,
                              .known = resumption ? resumption->manifest.picks : Picks()},
                             sink_);
  set_parameters(setup, resumption, train);
}

/// The strategy that the fit before this one left goes on.
void Trainer::build_on(TrainingSetup& setup, const Dataset& train, const std::vector<const Dataset*>& device_data) {
  setup.environment = environment_of(world_, *platform_.primitives, setup.threads_of_ranks);
  const BatchPlan plan = training_plan(setup.options, strategy_->shard(), train);
  agree(world_.communicator(), [&] {
    if (plan.capacity() > strategy_->batch_capacity())
      throw InputError("fit goes on with a model that is planned for " +
                       counted(strategy_->batch_capacity(), "sample") + " of a rank at once, and this data has " +
                       std::to_string(plan.capacity()) + "; the larger data comes first");
    strategy_->state().set_schedule(schedule_of(setup, plan));
  });
  strategy_->keep_data(device_data);
}

void Trainer::set_parameters(const TrainingSetup& setup, const std::optional<Resumption>& resumption,
                             const Dataset& train) {
  if (resumption) {
    const BatchPlan plan = training_plan(setup.options, strategy_->shard(), train);
    progress_ = go_on_from(*resumption, setup, plan, *strategy_, sink_);
    return;
  }
  if (setup.options.init.empty()) return;
  agree(world_.communicator(), [&] {
    if (world_.rank() != 0) return;
    StateList states;
    strategy_->state().visit_layer_states(states);
    load_parameters(setup.options.init, strategy_->parameters(), states.states());
  });
  strategy_->broadcast_parameters();
  strategy_->state().broadcast_states();
}

/// Collective.
Metrics Trainer::checked_metrics() const {
  Metrics metrics;
  for (const auto& metric : metrics_) metrics.push_back(metric.get());
  std::string names;
  agree(world_.communicator(), [&] {
    for (const std::string& name : checked_names(metrics, strategy_->plan().outputs, loss_.metric()))
      names += name + "\n";
    for (const SummedMetric* metric : metrics)  // all ranks' are added up, number by number
      names += std::to_string(metric->sums(strategy_->plan().outputs)) + " sums\n";
  });
  require_equal(world_.communicator(), "the metrics", names);
  return metrics;
}

/// The order of the hooks: faults come before all; what a step spoiled is found before anybody is told of it; weights
/// are pruned before anybody reads them; replicas are compared before they are saved; results come last.
Evaluation Trainer::run(const TrainingSetup& setup, Saving* saving, const FitData& data) {
  InjectedFaults faults(Faults(setup.options.faults, world_.rank()));
  NonfiniteGuard guard(saving);
  Pruning pruning;
  Reporting reporting;
  RateReduction rate_reduction;
  BestEpoch best_epoch;
  EarlyStopping early_stopping;
  TargetLoss target_loss;
  Shares shares;
  Audit audit;
  LeaveUnsaved leave_unsaved;
  Results results;
  const Metrics metrics = checked_metrics();
  std::vector<Hook*> hooks;
  if (!setup.options.faults.empty()) hooks.push_back(&faults);
  hooks.push_back(&guard);
  if (setup.options.prune > 0) hooks.push_back(&pruning);
  hooks.push_back(&reporting);
  if (setup.options.reduce_rate_after > 0) hooks.push_back(&rate_reduction);
  if (setup.options.keep_best) hooks.push_back(&best_epoch);
  if (setup.options.early_stopping > 0) hooks.push_back(&early_stopping);
  if (setup.options.target_loss) hooks.push_back(&target_loss);
  if (setup.options.shares != "equal" && world_.size() > 1) hooks.push_back(&shares);
  hooks.insert(hooks.end(), hooks_.begin(), hooks_.end());
  if (setup.options.audit_every > 0) hooks.push_back(&audit);
  if (saving != nullptr) hooks.push_back(saving);
  if (saving == nullptr && setup.options.leave) hooks.push_back(&leave_unsaved);
  hooks.push_back(&results);
  TrainingRun run({.world = world_,
                   .setup = setup,
                   .strategy = *strategy_,
                   .sink = sink_,
                   .statistics = statistics_,
                   .train = data.train,
                   .validation = data.validation,
                   .test = data.test,
                   .metric = loss_.metric(),
                   .metrics = metrics,
                   .hooks = hooks,
                   .asked_to_stop = asked_to_stop_,
                   .progress = progress_});
  run.train();
  left_ = run.left();
  require_written(results, saving);
  return run.result();
}

}  // namespace ronda
