#include <ronda/collectives/phase.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/process.hpp>
#include <ronda/runtime/checkpoint/snapshot.hpp>
#include <ronda/runtime/io/atomic_file.hpp>
#include <ronda/runtime/trainer/binding.hpp>
#include <ronda/runtime/trainer/device_choice.hpp>
#include <ronda/runtime/trainer/parameter_files.hpp>
#include <ronda/runtime/trainer/slow_ranks.hpp>
#include <ronda/runtime/trainer/trainer.hpp>
#include <ronda/runtime/trainer/version.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

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

}  // namespace

Trainer::Trainer(World& world, Layer& model, Loss& loss, TrainingOptions options, EventSink* sink)
    : world_(world), model_(model), loss_(loss), options_(std::move(options)) {
  sink_.add(statistics_);
  if (sink != nullptr && world.rank() == 0) sink_.add(*sink);
}

Evaluation Trainer::fit(const Dataset& train, const Dataset& test) {
  const AtEnd give_back_data([this] { give_back(); });
  agree(world_.communicator(), [&] {
    if (test.size() > 0) check_fields(train, test);
    check_options(train);
  });
  check_ranks_agree(test);
  choose_platform();
  sink_.on_note(first_line(train));
  tell_binding(world_, threads_, sink_);
  open_checkpoints();
  if (leaves_at_once()) return {};
  resumption_ = find_checkpoint(world_.communicator(), options_, sink_);
  agree(world_.communicator(), [&] {
    if (resumption_) check_changes(*resumption_, options_that_matter_, options_);
  });
  build(train, test);
  resume(train);
  const BatchPlan plan = train_plan(train);
  BatchLoader loader(train, SampleOrder(train.size(), options_.seed, options_.shuffle), plan, loading(train, true));
  const AtEnd before_it_goes([this] { strategy_->drain(); });  // steps in flight may read its batches
  if (test.size() > 0)
    test_loader_ =
        std::make_unique<BatchLoader>(test, SampleOrder(test.size(), 0, false), test_plan(test), loading(test, false));
  EpochReport report = resumption_ ? resumption_->manifest.current : EpochReport();
  if (options_.audit_every > 0) {
    StateList states;
    strategy_->visit(states);
    audit_ = std::make_unique<ReplicaAudit>(world_.communicator(), states.states(), platform_.device);
    report.epoch = history_.size() + 1;
    audit(loader, report);
  }
  while ((step_ < total_steps_ || step_in_epoch_ > 0) && !stopped_) {
    report.epoch = history_.size() + 1;
    report.epochs = epochs_;
    train_epoch(loader, report);
    if (left_) break;
    test_epoch(report);
    report = end_epoch(loader, report);
  }
  if (checkpointer_) end_saving();
  if (left_) return {report.test_loss, report.test_accuracy};
  report = history_.back();
  if (!options_.predictions.empty() && test_loader_) write_predictions(test);
  write_files(report);
  require_saved();
  return {report.test_loss, report.test_accuracy};
}

/// Whatever points to what fit was given.
void Trainer::give_back() noexcept {
  test_loader_.reset();
  in_flight_.clear();
  if (strategy_) strategy_->forget_data();
}

// ---- before the first step ------------------------------------------------------------------------------------------

void Trainer::check_options(const Dataset& train) {
  if (train.size() == 0) throw InputError("there are no training samples");
  check(options_);
  const auto ranks = static_cast<std::size_t>(world_.size());
  if (options_.batch_size > 0) options_.global_batch_size = options_.batch_size * ranks;
  if (options_.global_batch_size == 0) options_.global_batch_size = 128;
  options_.global_batch_size = std::min(options_.global_batch_size, train.size());
  const std::size_t largest_part = (options_.global_batch_size + ranks - 1) / ranks;
  if (options_.accumulate > largest_part)
    throw InputError("--accumulate " + std::to_string(options_.accumulate) + " micro-batches are more than the " +
                     counted(largest_part, "sample") + " of a step that a rank has; give at most as many");
  if (options_.learning_rate == 0) options_.learning_rate = default_learning_rate(options_.optimizer.name);
  threads_ = options_.threads > 0 ? options_.threads : world_.cores();
  prefetch_ = world_.cores() > threads_ && !world_.communicator().topology().oversubscribed;
  const std::uint64_t steps_per_epoch = train_plan(train).steps_per_epoch();
  const std::uint64_t wanted = options_.steps.value_or(std::numeric_limits<std::uint64_t>::max());
  epochs_ = options_.epochs.value_or(options_.steps ? (wanted - 1) / steps_per_epoch + 1 : 1);
  if (epochs_ > std::numeric_limits<std::uint64_t>::max() / steps_per_epoch)
    throw InputError("so many epochs cannot be counted");
  total_steps_ = std::min(wanted, epochs_ * steps_per_epoch);
  epochs_ = (total_steps_ - 1) / steps_per_epoch + 1;
  options_that_matter_ = options_that_matter(options_, total_steps_, train);
  faults_ = Faults(options_.faults, world_.rank());
  if (world_.rank() != 0) return;
  for (const auto* path : {&options_.save, &options_.summary_json, &options_.metrics, &options_.predictions})
    if (!path->empty()) check_creatable(*path);  // before hours of training, not after
}

void Trainer::check_ranks_agree(const Dataset& test) {
  require_equal(world_.communicator(), "the training data", options_that_matter_.at("data"));
  require_equal(world_.communicator(), "the test data", text_of(test));
  std::string lines;
  for (const auto& option : in_words(options_)) lines += option.name + " " + option.value + "\n";
  require_equal(world_.communicator(), "the options", lines);
}

void Trainer::choose_platform() {
  ComputeDevice& device = platform_.device;
  if (!device.context) device = choose_device(world_.communicator(), options_, threads_, sink_);
  if (device.context->device().kind != DeviceKind::cpu)
    agree(world_.communicator(), [&] { require_for_gpus(options_); });
}

void Trainer::build(const Dataset& train, const Dataset& test) {
  const Phase phase(world_.communicator(), Activity::planning);
  const ComputeDevice& device = platform_.device;
  if (!platform_.primitives)
    platform_.primitives = device.context->device().kind == DeviceKind::cpu
                               ? make_onednn_primitives(threads_)
                               : make_cudnn_primitives(*device.context, *device.stream, engine_rules(options_));
  const BatchPlan plan = train_plan(train);
  environment_ = environment(*platform_.primitives);
  PlanStore store(world_, options_.plan, environment_);
  MirroredOptions options = MirroredOptions::for_data(train, plan);
  options.initializer = options_.initializer;
  options.seed = options_.seed;
  options.clip_norm = options_.clip_norm;
  options.check_gradients = options_.on_nonfinite.has_value();
  options.fusion.algorithm = options_.allreduce;
  options.fusion.compression = options_.compression;
  options.fusion.seed = options_.seed;
  options.threads = threads_;
  options.memory_limit = options_.memory_limit;
  options.platform = platform_;
  options.steps_in_flight = platform_.device.context->device().kind == DeviceKind::cpu ? 1 : options_.steps_in_flight;
  options.device_data.push_back(&train);
  if (test.size() > 0) options.device_data.push_back(&test);
  options.picks = store.load();
  for (const auto& damage : store.damages()) sink_.on_note(damage);
  options.plan_name = store.given_name();
  if (resumption_ && options.plan_name.empty())
    for (const auto& [question, choice] : resumption_->manifest.picks) options.picks.insert_or_assign(question, choice);
  if (options_.bucket_bytes > 0) {
    options.fusion.bucket_bytes = options_.bucket_bytes;
    options.fusion.first_bucket_bytes = std::min(options.fusion.first_bucket_bytes, options_.bucket_bytes);
  }
  std::unique_ptr<Optimizer> optimizer;
  std::optional<Schedule> rates;
  agree(world_.communicator(), [&] {
    optimizer = make_optimizer(options_.optimizer);
    rates = schedule(plan);
  });
  const bool spoils =
      std::ranges::any_of(options_.faults, [](const Fault& f) { return f.kind == FaultKind::flip_gradient; });
  Loss& loss = spoils ? spoiled_loss_ : loss_;
  strategy_ = std::make_unique<MirroredStrategy>(world_.communicator(), model_, loss, std::move(optimizer), *rates,
                                                 options, &sink_);
  store.keep(*strategy_, sink_);
  if (options_.init.empty() || resumption_) return;
  agree(world_.communicator(), [&] {
    if (world_.rank() == 0) load_parameters(options_.init, strategy_->parameters());
  });
  strategy_->broadcast_parameters();
}

/// Injected faults are of values. Where a GPU computes, reading ahead needs no core of its own.
LoaderOptions Trainer::loading(const Dataset& data, bool in_steps) const {
  LoaderOptions loading{.prefetch = prefetch_, .varies = in_steps};
  DeviceContext& device = *platform_.device.context;
  if (device.device().kind == DeviceKind::cpu) return loading;
  if (strategy_->keeps(data) && options_.faults.empty()) loading.contents = BatchContents::samples;
  loading.prefetch = loading.contents == BatchContents::values && world_.cores() > 1;
  if (!in_steps) return loading;
  loading.kept = strategy_->most_in_flight() * options_.accumulate;
  loading.staging = &device;
  return loading;
}

BatchPlan Trainer::train_plan(const Dataset& train) const {
  return {train.size(), options_.global_batch_size, shard_of(world_.communicator()), options_.accumulate};
}

BatchPlan Trainer::test_plan(const Dataset& test) const {
  const std::size_t rows = strategy_->batch_capacity();
  return BatchPlan(test.size(), rows * shard_of(world_.communicator()).count, shard_of(world_.communicator()))
      .with_capacity(rows);
}

Schedule Trainer::schedule(const BatchPlan& plan) const {
  const double tenth = options_.schedule == "constant" ? 0 : 0.1 * static_cast<double>(total_steps_);
  constexpr double for_ever = 1e15;  // steps; a whole number, as all below it
  const double warmup =
      options_.warmup_epochs ? *options_.warmup_epochs * static_cast<double>(plan.steps_per_epoch()) : tenth;
  return Schedule({.name = options_.schedule,
                   .learning_rate = options_.learning_rate,
                   .total_steps = total_steps_,
                   .warmup_steps = static_cast<std::uint64_t>(std::llround(std::min(warmup, for_ever))),
                   .scaling = options_.scale_learning_rate,
                   .global_batch = options_.global_batch_size});
}

std::map<std::string, std::string> Trainer::environment(const Primitives& primitives) const {
  const Topology& topology = world_.communicator().topology();
  const auto names = world_.communicator().gather_texts(processor_name());
  std::string processors;
  for (const auto& name : std::set<std::string>(names.begin(), names.end()))
    processors += (processors.empty() ? "" : ", ") + name;
  return {{"processor", processors},
          {"library", primitives.name()},
          {"ronda", version()},
          {"threads", std::to_string(threads_)},
          {"ranks a node", std::to_string(topology.most_ranks_on_a_node)}};
}

std::string Trainer::first_line(const Dataset& train) const {
  const Topology& topology = world_.communicator().topology();
  const DeviceContext& device = *platform_.device.context;
  return options_.application + ": " + counted(world_.size(), "replica") + " on " + counted(topology.nodes, "host") +
         ", " +
         (device.device().kind == DeviceKind::cpu ? "cpu with " + counted(threads_, "thread") + " each"
                                                  : device.device().text() + ", " + device.name()) +
         "; " + counted(static_cast<std::int64_t>(train.size()), "sample") + ", " +
         std::to_string(options_.global_batch_size) + " a step, " + counted(epochs_, "epoch") + ", " +
         counted(total_steps_, "step");
}

// ---- training -------------------------------------------------------------------------------------------------------

void Trainer::train_epoch(BatchLoader& loader, EpochReport& report) {
  loader.seek(report.epoch, static_cast<std::size_t>(step_in_epoch_));
  // What reacts to a step before the next one begins lets none be ahead.
  const bool reacts = hooks_.step || options_.on_nonfinite == OnNonfinite::rollback || !options_.faults.empty();
  most_in_flight_ = reacts ? 1 : strategy_->most_in_flight();
  for (;;) {
    if (may_begin(loader.plan()))
      begin_step(loader);
    else if (!in_flight_.empty())
      end_step(loader, report);
    else
      break;
  }
  report.train_loss /= epoch_weight_;
  report.train_accuracy /= epoch_weight_;
}

/// Whether a step is to begin now; otherwise the oldest in flight is to be finished, or all is done.
bool Trainer::may_begin(const BatchPlan& plan) const {
  const std::size_t begun = in_flight_.size();
  if (stopped_ || begun == most_in_flight_ || step_in_epoch_ + begun == plan.steps_per_epoch() ||
      step_ + begun == total_steps_)
    return false;
  return begun == 0 || !(settles_ || settles_after(step_ + begun));
}

/// Whether that is a step after which all ranks stand still.
bool Trainer::settles_after(std::uint64_t step) const {
  const std::uint64_t saves = checkpointer_ ? options_.checkpoint_every.steps : 0;
  return (saves > 0 && step % saves == 0) || (audit_ && step % options_.audit_every == 0);
}

void Trainer::begin_step(BatchLoader& loader) {
  if (statistics_.steps() == 0 && in_flight_.empty()) startup_seconds_ = seconds_since_process_start();
  Begun step{.batch = nullptr, .start = steady_seconds(), .data = 0};
  const auto next = [&]() -> const Batch& {
    const double asked = steady_seconds();
    const Batch& batch = loader.next();
    step.data += steady_seconds() - asked;
    return batch;
  };
  faults_.before_step(step_ + 1);
  strategy_->raise(flags());
  for (std::size_t micro = 0; micro + 1 < loader.plan().micro_batches(); ++micro) strategy_->accumulate(next());
  const Batch& batch = next();
  spoil(batch);
  strategy_->begin_step(batch);
  step.batch = &batch;
  in_flight_.push_back(step);
}

/// Looks at the oldest step in flight, and reacts to it once none is left that began before it was looked at.
void Trainer::end_step(BatchLoader& loader, EpochReport& report) {
  const std::uint64_t rollbacks = guarded_.rollbacks;
  const StepReport step_report = finish_step(loader.plan(), report);
  if (!last_step_.nonfinite && !last_step_.spoiled) {
    epoch_weight_ += last_step_.weight;
    report.train_loss += last_step_.loss * last_step_.weight;
    report.train_accuracy += last_step_.accuracy * last_step_.weight;
  }
  sink_.on_step(step_report);
  if (hooks_.step) hooks_.step(step_report);
  // After a rollback the audited copy is of a past that no longer leads here.
  if (audit_ && (step_ % options_.audit_every == 0 || guarded_.rollbacks > rollbacks)) audit(loader, report);
  if (checkpointer_) save_if_due(loader, report);
}

StepReport Trainer::finish_step(const BatchPlan& plan, EpochReport& report) {
  const Begun begun = in_flight_.front();
  last_step_ = strategy_->finish_step();
  last_step_.times.data = begun.data;
  in_flight_.erase(in_flight_.begin());
  guard(*begun.batch);
  const auto in_epoch = static_cast<std::size_t>(step_in_epoch_);
  ++step_;
  ++step_in_epoch_;
  left_ = (left_ || last_step_.flags.leave > 0) && step_ < total_steps_;
  stopped_ = stopped_ || last_step_.stop || left_;
  const double start = std::max(begun.start, last_end_);  // what steps have in common counts once
  last_end_ = steady_seconds();
  const StepReport step_report{.step = step_,
                               .epoch = report.epoch,
                               .step_in_epoch = in_epoch + 1,
                               .steps_in_epoch = plan.steps_per_epoch(),
                               .loss = last_step_.loss,
                               .accuracy = last_step_.accuracy,
                               .learning_rate = last_step_.learning_rate,
                               .samples = plan.samples(in_epoch),
                               .seconds = last_end_ - start,
                               .times = last_step_.times};
  report.seconds += step_report.seconds;
  report.samples += step_report.samples;
  report.times += last_step_.times;
  return step_report;
}

/// Returns the report of the next epoch.
EpochReport Trainer::end_epoch(BatchLoader& loader, const EpochReport& report) {
  history_.push_back(report);
  sink_.on_epoch(report);
  tell_slow_ranks(report);
  if (hooks_.epoch) hooks_.epoch(report);
  step_in_epoch_ = 0;
  epoch_weight_ = 0;
  EpochReport next;
  next.epoch = history_.size() + 1;
  if (!stopped_ && step_ < total_steps_) stop_between_epochs(loader, next);
  return next;
}

/// What was asked for in an epoch's last hooks is agreed on before a step of the next one begins.
void Trainer::stop_between_epochs(BatchLoader& loader, const EpochReport& next) {
  std::int32_t asked = asked_to_stop() ? 1 : 0;
  Communicator all = world_.communicator();
  all.allreduce(Tensor(std::span(&asked, 1)), ReduceOp::maximum);
  stopped_ = asked > 0;
  if (stopped_ && checkpointer_) save_last(loader, next);
}

/// Costs one small exchange an epoch, and a step nothing.
void Trainer::tell_slow_ranks(const EpochReport& report) {
  Communicator all = world_.communicator();
  if (all.size() == 1) return;
  double mine = report.times.communication;
  std::vector<double> waited(static_cast<std::size_t>(all.size()));
  all.allgather(Tensor(std::span(&mine, 1)), Tensor(std::span(waited)));
  sink_.on_detail(describe_waits(waited, report.seconds, all.topology().hosts));
  const auto silent = report.epoch == 1 ? world_.out_of_reach() : std::vector<int>();
  if (!silent.empty())
    sink_.on_detail("datagrams do not get through from rank " + std::to_string(silent.front()) + " and " +
                    std::to_string(silent.size() - 1) +
                    " more: when the job stands still, nothing will be known of them but that they are silent");
}

void Trainer::test_epoch(EpochReport& report) {
  if (!test_loader_) return strategy_->average_states();  // an epoch ends alike, tested or not
  test_loader_->seek(1);
  const Phase phase(world_.communicator(), Activity::evaluating);
  const double start = steady_seconds();
  const Evaluation evaluation = strategy_->evaluate(*test_loader_);
  slowest_test_ = std::max(slowest_test_, steady_seconds() - start);
  report.test_loss = evaluation.loss;
  report.test_accuracy = evaluation.accuracy;
  report.evaluated = true;
  if (hooks_.evaluation) hooks_.evaluation(evaluation);
}

}  // namespace ronda
