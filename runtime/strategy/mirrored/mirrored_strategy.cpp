#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_plan.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>
#include <ronda/runtime/strategy/sharded/sharded.hpp>
#include <ronda/runtime/strategy/step/step_runner.hpp>

#include <string>
#include <utility>

namespace ronda {

// ---- construction ---------------------------------------------------------------------------------------------------

MirroredStrategy::MirroredStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule,
                                   const MirroredOptions& options, EventSink* sink)
    : Strategy(std::move(communicator), std::move(optimizer), options, sink),
      exchange_plan_(options_.strategy.is_default() ? exchange_plan(Mirrored()) : options_.strategy.plan()) {
  shard_ = exchange_plan_->shard(communicator_, true);
  test_shard_ = exchange_plan_->shard(communicator_, false);
  agree(communicator_, [&] { use_threads(options_.threads); });
  const bool one_copy = exchange_plan_->has_one_copy(communicator_);
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  agree(communicator_, [&] { make_replica(model, loss, picker); });
  check_memory_and_suggest();
  agree(communicator_,
        [&] { replica_->take_memory(optimizer_->states().size(), plan_.states, options_.ema_decay > 0 && !one_copy); });
  auto exchange = make_exchange();
  for (const auto& line : exchange->report().plan) plan_.lines.push_back(line);
  auto rank_sums = make_rank_sums();
  agree(communicator_, [&] {
    replica_->bind();
    step_sums_ = std::make_unique<ControlBlock>(replica_->device(), *exchange->traits().sums);
    run_by(std::make_unique<StepRunner>(
        StepRunner::Parts{.communicator = communicator_,
                          .computation = *this,
                          .replica = *replica_,
                          .optimizer = *optimizer_,
                          .exchange = std::move(exchange),
                          .rank_sums = std::move(rank_sums),
                          .shares = exchange_plan_->shares_of_states(communicator_.size(), replica_->plan().elements()),
                          .computing = test_shard_},
        options_, schedule, [](const TrainingState::Parts& parts) { return std::make_unique<TrainingState>(parts); }));
  });
  keep_data(options_.device_data.sets);
  options_.device_data.sets.clear();  // they may go before the strategy
  plan_.memory.exchange = device().context->device().kind == DeviceKind::cpu ? runner().exchange().report().memory : 0;
  check_memory_and_suggest();
  plan_.picks = picker.answered();
  plan_.timed_something = picker.timed_something();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] {
    if (writes_values(*replica_, communicator_)) replica_->initialize(options_.initializer, options_.seed);
  });
  state().broadcast_parameters();
  tell_plan(plan_, options_, *exchange_plan_, communicator_, *replica_, sink_);
}

MirroredStrategy::~MirroredStrategy() { drain(); }

void MirroredStrategy::make_replica(const Layer& model, const Loss& loss, Picker& picker) {
  replica_ = std::make_unique<Replica>(model, loss, options_.platform.device, options_.platform.primitives, picker,
                                       options_.shape.fields, options_.shape.batch_capacity,
                                       options_.shape.global_batch, options_.seed, options_.reduce_dtype);
  plan_ = plan_mirrored(options_, *exchange_plan_, *replica_, *optimizer_, communicator_);
}

/// Tells a communicator without a GPU of the replica's.
std::unique_ptr<GradientExchange> MirroredStrategy::make_exchange() {
  const auto& context = replica_->device().context;
  const DeviceKind kind = context->device().kind;
  agree(communicator_, [&] { require_fitting(options_.fusion.algorithm, kind); });
  if (kind != DeviceKind::cpu && communicator_.devices().empty())
    communicator_.use_device(context, options_.fusion.algorithm);
  ExchangeSettings settings = exchange_settings(options_);
  settings.fusion.dtype = replica_->plan().reduce_dtype;
  return exchange_plan_->make(communicator_, *replica_, settings, sink_);
}

/// Sums of layers over the ranks that compute; null if only one does, and on a server.
std::unique_ptr<PlannedRankSums> MirroredStrategy::make_rank_sums() {
  const auto counts = replica_->program().rank_sums();
  Communicator computing = communicator_;
  if (!exchange_plan_->all_ranks_compute() && !counts.empty())
    computing = communicator_.split(shard_.is_empty() ? 1 : 0, communicator_.rank());
  if (computing.size() == 1 || shard_.is_empty()) return nullptr;
  return std::make_unique<PlannedRankSums>(computing, counts);
}

void MirroredStrategy::check_memory_and_suggest() const {
  agree(communicator_, [&] {
    try {
      check_memory_limit(plan_.memory, options_.memory_limit, options_.shape.batch_capacity,
                         options_.shape.micro_batches);
    } catch (const InputError& error) {
      throw InputError(error.message() + sharding_that_fits());
    }
  });
}

/// Suggests the strategy sharded, with the memory that it needs for the same batch, if it fits the limit: it divides
/// values that mirrored ranks duplicate. Empty if it does not fit or is not possible.
Message MirroredStrategy::sharding_that_fits() const {
  const bool mirrored = options_.strategy.is_default() || options_.strategy.as<Mirrored>() != nullptr;
  if (communicator_.size() == 1 || !mirrored) return {};
  for (const bool gradients_too : {false, true}) {
    const auto sharded = exchange_plan(Sharded{.shard_gradients = gradients_too});
    try {
      const std::size_t bytes = plan_mirrored(options_, *sharded, *replica_, *optimizer_, communicator_).memory.total();
      if (bytes > options_.memory_limit) continue;
      return ", or take " + setting("strategy", "sharded") +
             (gradients_too ? " with " + setting("shard_gradients") : "") + ", where a rank needs " +
             human_bytes(bytes) + " for this batch";
    } catch (const InputError&) {  // this optimizer or model cannot be divided
    }
  }
  return {};
}

// ---- what it computes -----------------------------------------------------------------------------------------------

void MirroredStrategy::compute(const Batch& here) {
  if (shard_.is_empty()) return;  // a server
  Pass pass = runner().training_pass(here);
  pass.on_ready = runner().listen();
  replica_->compute(here, pass, runner().clock());
}

void MirroredStrategy::require_micro_batches(std::size_t count) const {
  if (options_.platform.device.context->device().kind != DeviceKind::cpu)
    throw InputError("on GPUs all ranks take the same number of micro-batches; take " + setting("shares", "equal") +
                     ", or " + setting("device", "cpu"));
  if (!replica_->program().rank_sums().empty())
    throw InputError(
        "all ranks take the same number of micro-batches where layers add up over them, as a SyncBatchNorm does; take "
        "a BatchNorm, or " +
        setting("shares", "equal"));
  if (runner().traits().share)
    throw InputError("all ranks take the same number of micro-batches where they sum the gradients of each, with " +
                     setting("shard_gradients") + "; leave that out, or take " + setting("shares", "equal"));
  if (count == 0 || (options_.shape.micro_batches == 1 && count > 1))
    throw LogicError("a step of " + std::to_string(count) + " micro-batches was asked of a strategy for " +
                     std::to_string(options_.shape.micro_batches));
}

Outputs MirroredStrategy::evaluate_batch(const Batch& given, StepControl* sums) {
  const Batch& here = place(given);
  return {here, &replica_->evaluate(here, replica_->pass(Mode::evaluation, here, updates(), sums))};
}

std::optional<double> MirroredStrategy::compute_alone(const Batch& given, const OnReady& on_ready, ControlBlock& sums) {
  if (shard_.is_empty()) return std::nullopt;
  const Batch& here = place(given);
  sums.clear();
  Pass pass = replica_->pass(Mode::training, here, state().next_step(), sums.there());
  pass.on_ready = on_ready;  // instead of the exchange
  StepClock unread;
  replica_->compute(here, pass, unread);
  return sums.read().loss;
}

const Batch& MirroredStrategy::place(const Batch& batch) { return runner().queue().place(batch); }

// ---- a step by hand -------------------------------------------------------------------------------------------------

Pass MirroredStrategy::begin_pass(const Batch& batch) {
  require_none_in_flight(runner().queue(), "a step by hand");
  if (runner().traits().share)
    throw LogicError("a step by hand could not see the gradients, of which a rank keeps a part alone with " +
                     setting("shard_gradients") + ": take train_step, or leave that out");
  runner().start(batch);
  if (runner().queue().micro_batch() == 0) {
    if (runner().traits().pace != nullptr) runner().traits().pace->expect_all_sums();
    step_sums_->clear(raised());
  }
  if (runner().queue().at_last()) runner().exchange().begin();
  return runner().training_pass(batch);
}

const Tensor& MirroredStrategy::forward(const Batch& batch, const Pass& pass) {
  const FlushDenormals flushing = runner().flush_denormals();
  const Tensor& outputs = replica_->forward(batch, pass);
  runner().clock().lap(&StepTimes::forward);
  return outputs;
}

const Tensor& MirroredStrategy::loss(const Batch& batch, const Pass& pass) {
  const FlushDenormals flushing = runner().flush_denormals();
  return replica_->loss(batch, pass);
}

void MirroredStrategy::backward(const Pass& pass) {
  const FlushDenormals flushing = runner().flush_denormals();
  Pass reporting = pass;
  reporting.on_ready = runner().listen();
  replica_->backward(reporting);
  runner().clock().lap(&StepTimes::backward);
}

const StepControl& MirroredStrategy::reduce(const Pass& pass) {
  const FlushDenormals flushing = runner().flush_denormals();
  runner().exchange().reduce(GradientExchange::Sums::of_all, pass.stream);
  const StepControl& total = step_sums_->read();
  communicator_.require_devices();
  runner().queue().end_by_hand();  // the next micro-batch is another step's
  runner().clock().lap(&StepTimes::communication);
  return total;
}

StepResult MirroredStrategy::apply(const StepControl& total, const Pass& pass) {
  const FlushDenormals flushing = runner().flush_denormals();
  step_sums_->write(total);  // the caller may have changed it
  runner().updater().decide(runner().traits().sums, pass.stream);
  runner().exchange().update([&](const ArenaRange& range) { runner().updater().apply(range, pass.stream); },
                             pass.stream);
  runner().exchange().publish(runner().updater().outcome(), pass.stream);
  runner().updater().average(pass.stream);
  return runner().count(runner().queue().outcome_by_hand());
}

}  // namespace ronda
