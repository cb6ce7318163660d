#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/step/kept_data.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_plan.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/step/nonfinite_search.hpp>
#include <ronda/runtime/strategy/step/replica_updater.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>
#include <ronda/runtime/strategy/sharded/sharded.hpp>
#include <ronda/runtime/strategy/step/step_update.hpp>

#include <string>
#include <utility>

namespace ronda {

// ---- what it is made of ---------------------------------------------------------------------------------------------

MirroredStrategy::MirroredStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule,
                                   const MirroredOptions& options, EventSink* sink)
    : communicator_(std::move(communicator)),
      sink_(sink != nullptr ? *sink : silence_),
      options_(options.completed()),
      exchange_plan_(options_.strategy.is_default() ? exchange_plan(Mirrored()) : options_.strategy.plan()),
      shard_(exchange_plan_->shard(communicator_, true)),
      test_shard_(exchange_plan_->shard(communicator_, false)),
      optimizer_(std::move(optimizer)),
      host_copy_(options_.platform.device) {
  const ComputeDevice& device = options_.platform.device;
  agree(communicator_, [&] { use_threads(options_.threads); });
  const bool one_copy = exchange_plan_->has_one_copy(communicator_);
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  agree(communicator_, [&] { make_replica(model, loss, picker); });
  check_memory();
  agree(communicator_,
        [&] { replica_->take_memory(optimizer_->states().size(), plan_.states, options_.ema_decay > 0 && !one_copy); });
  make_exchange();
  for (const auto& line : exchange_->report().plan) plan_.lines.push_back(line);
  plan_rank_sums();
  agree(communicator_, [&] { take_memory(schedule); });
  keep_data(options_.device_data);
  options_.device_data.clear();  // they may go before the strategy
  plan_.memory.exchange = device.context->device().kind == DeviceKind::cpu ? exchange_->report().memory : 0;
  check_memory();
  plan_.picks = picker.answered();
  plan_.timed_something = picker.timed_something();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] {
    if (writes_values(*replica_, communicator_)) replica_->initialize(options_.initializer, options_.seed);
  });
  state_->broadcast_parameters();
  tell_plan(plan_, options_, *exchange_plan_, communicator_, *replica_, sink_);
}

MirroredStrategy::~MirroredStrategy() {
  if (queue_) drain();
}

void MirroredStrategy::make_replica(const Layer& model, const Loss& loss, Picker& picker) {
  replica_ = std::make_unique<Replica>(model, loss, options_.platform.device, options_.platform.primitives, picker,
                                       options_.fields, options_.batch_capacity, options_.global_batch, options_.seed,
                                       options_.reduce_dtype);
  plan_ = plan_mirrored(options_, *exchange_plan_, *replica_, *optimizer_, communicator_);
}

/// Tells a communicator without a GPU of the replica's.
void MirroredStrategy::make_exchange() {
  const auto& context = replica_->device().context;
  const DeviceKind kind = context->device().kind;
  agree(communicator_, [&] { require_fitting(options_.fusion.algorithm, kind); });
  if (kind != DeviceKind::cpu && communicator_.devices().empty())
    communicator_.use_device(context, options_.fusion.algorithm);
  ExchangeSettings settings = exchange_settings(options_);
  settings.fusion.dtype = replica_->plan().reduce_dtype;
  exchange_ = exchange_plan_->make(communicator_, *replica_, settings, sink_);
  traits_ = exchange_->traits();
}

void MirroredStrategy::plan_rank_sums() {
  const auto counts = replica_->program().rank_sums();
  Communicator computing = communicator_;
  if (!exchange_plan_->all_ranks_compute() && !counts.empty())
    computing = communicator_.split(shard_.is_empty() ? 1 : 0, communicator_.rank());
  if (computing.size() > 1 && !shard_.is_empty()) rank_sums_ = std::make_unique<PlannedRankSums>(computing, counts);
}

void MirroredStrategy::check_memory() const {
  agree(communicator_, [&] {
    try {
      check_memory_limit(plan_.memory, options_.memory_limit, options_.batch_capacity, options_.micro_batches);
    } catch (const InputError& error) {
      throw InputError(error.what() + sharding_that_fits());
    }
  });
}

/// Suggests --strategy sharded, with the memory that it needs for the same batch, if it fits the limit: it divides
/// values that mirrored ranks duplicate. Empty if it does not fit or is not possible.
std::string MirroredStrategy::sharding_that_fits() const {
  const bool mirrored = options_.strategy.is_default() || options_.strategy.as<Mirrored>() != nullptr;
  if (communicator_.size() == 1 || !mirrored) return {};
  for (const bool gradients_too : {false, true}) {
    const auto sharded = exchange_plan(Sharded{.shard_gradients = gradients_too});
    try {
      const std::size_t bytes = plan_mirrored(options_, *sharded, *replica_, *optimizer_, communicator_).memory.total();
      if (bytes > options_.memory_limit) continue;
      return ", or take .strategy = sharded" + std::string(gradients_too ? " with .shard_gradients" : "") +
             ", where a rank needs " + human_bytes(bytes) + " for this batch";
    } catch (const InputError&) {  // this optimizer or model cannot be divided
    }
  }
  return {};
}

/// All that works on the arenas, once they are there.
void MirroredStrategy::take_memory(const Schedule& schedule) {
  const ComputeDevice& device = options_.platform.device;
  replica_->bind();
  const auto& sharded = traits_.share;
  accumulator_ = std::make_unique<GradientAccumulator>(*replica_, sharded ? 1 : options_.micro_batches);
  updater_ = sharded ? make_updater(options_, *replica_, *optimizer_, schedule, sharded->over_ranks, sharded->share)
                     : make_updater(options_, *replica_, *optimizer_, schedule);
  if (updater_->reads_all_gradients() && traits_.pace != nullptr) traits_.pace->expect_all_sums();
  step_sums_ = std::make_unique<ControlBlock>(device, *traits_.sums);
  other_sums_ = std::make_unique<ControlBlock>(device);
  StepQueueOptions queue = queue_options(options_);
  queue.record = queue.record && traits_.moves_alone;
  queue_ = make_step_queue(device, communicator_, {traits_.sums, updater_->outcome()}, queue);
  state_ = std::make_unique<TrainingState>(
      TrainingState::Parts{communicator_, *replica_, *optimizer_, *updater_, *exchange_, *queue_,
                           exchange_plan_->shares_of_states(communicator_.size(), replica_->plan().elements()),
                           test_shard_, options_.has_samples});
}

// ---- a step ---------------------------------------------------------------------------------------------------------

void MirroredStrategy::begin_step(const Batch& batch) {
  require_last(*queue_);
  begin_micro_batch(batch);
}

void MirroredStrategy::accumulate(const Batch& batch) {
  require_before_last(*queue_);
  begin_micro_batch(batch);
}

void MirroredStrategy::set_micro_batches(std::size_t count) {
  if (options_.platform.device.context->device().kind != DeviceKind::cpu)
    throw InputError("on GPUs all ranks take the same number of micro-batches; take .shares = equal, or .device = cpu");
  if (!replica_->program().rank_sums().empty())
    throw InputError(
        "all ranks take the same number of micro-batches where layers add up over them, as a "
        "SyncBatchNorm does; take a BatchNorm, or .shares = equal");
  if (traits_.share)
    throw InputError(
        "all ranks take the same number of micro-batches where they sum the gradients of each, with .shard_gradients; "
        "leave that out, or take .shares = equal");
  if (count == 0 || (options_.micro_batches == 1 && count > 1))
    throw LogicError("a step of " + std::to_string(count) + " micro-batches was asked of a strategy for " +
                     std::to_string(options_.micro_batches));
  queue_->set_micro_batches(count);
}

/// One micro-batch: the replica computes. In the last one the exchange sums the gradients, and the updater changes the
/// parameters. On a GPU this only queues the work.
void MirroredStrategy::begin_micro_batch(const Batch& given) {
  const FlushDenormals flushing = flush_denormals();
  start(given);
  queue_->enqueue(given, raised(), [&](const Batch& batch) {
    const bool first = queue_->micro_batch() == 0, last = queue_->at_last();
    if (last || traits_.share) exchange_->begin();
    if (!shard_.is_empty() && !idles_) compute(batch, first, last);
    if (!last) return;
    idles_ = false;
    update(*exchange_, *updater_, replica_->stream(), clock_);
  });
}

std::optional<std::size_t> MirroredStrategy::samples_for(std::size_t step, std::size_t steps) {
  const auto place = traits_.pace == nullptr ? std::optional(step) : traits_.pace->samples_for(step, steps);
  idles_ = !place;
  return place;
}

void MirroredStrategy::compute(const Batch& batch, bool first, bool last) {
  Pass pass = training_pass(batch);
  pass.on_ready = accumulator_->listen(first, last, *exchange_);
  replica_->compute(batch, pass, clock_);
}

StepResult MirroredStrategy::finish_step() {
  StepResult result = count_step(queue_->finish(), *state_, clock_);
  if (traits_.pace == nullptr) return result;
  const auto taken = traits_.pace->samples_taken();
  result.samples_of = taken.step;
  result.settled = taken.settled;
  return result;
}

void MirroredStrategy::start(const Batch& batch) {
  if (batch.source() != nullptr && !keeps(*batch.source()))
    throw LogicError("the batch holds numbers of samples, and their dataset is not in device memory (see keeps)");
  replica_->check(batch);
  if (steps_in_flight() == 0) clock_.resume();
  if (queue_->micro_batch() == 0) communicator_.set_step(state_->next_step());
}

Pass MirroredStrategy::training_pass(const Batch& batch) {
  Pass pass = replica_->pass(Mode::training, batch, state_->next_step(), &*traits_.sums);
  pass.ranks = rank_sums_.get();
  return pass;
}

// ---- a step by hand -------------------------------------------------------------------------------------------------

Pass MirroredStrategy::begin_pass(const Batch& batch) {
  require_none_in_flight(*queue_, "a step by hand");
  if (traits_.share)
    throw LogicError(
        "a step by hand could not see the gradients, of which a rank keeps a part alone with .shard_gradients: take "
        "train_step, or leave that out");
  start(batch);
  if (queue_->micro_batch() == 0) {
    if (traits_.pace != nullptr) traits_.pace->expect_all_sums();
    step_sums_->clear(raised());
  }
  if (queue_->at_last()) exchange_->begin();
  return training_pass(batch);
}

const Tensor& MirroredStrategy::forward(const Batch& batch, const Pass& pass) {
  const FlushDenormals flushing = flush_denormals();
  const Tensor& outputs = replica_->forward(batch, pass);
  clock_.lap(&StepTimes::forward);
  return outputs;
}

const Tensor& MirroredStrategy::loss(const Batch& batch, const Pass& pass) {
  const FlushDenormals flushing = flush_denormals();
  return replica_->loss(batch, pass);
}

void MirroredStrategy::backward(const Pass& pass) {
  const FlushDenormals flushing = flush_denormals();
  Pass reporting = pass;
  reporting.on_ready = accumulator_->listen(queue_->micro_batch() == 0, queue_->at_last(), *exchange_);
  replica_->backward(reporting);
  clock_.lap(&StepTimes::backward);
}

const StepControl& MirroredStrategy::reduce(const Pass& pass) {
  const FlushDenormals flushing = flush_denormals();
  exchange_->reduce(GradientExchange::Sums::of_all, pass.stream);
  const StepControl& total = step_sums_->read();
  communicator_.require_devices();
  queue_->end_by_hand();  // the next micro-batch is another step's
  clock_.lap(&StepTimes::communication);
  return total;
}

StepResult MirroredStrategy::apply(const StepControl& total, const Pass& pass) {
  const FlushDenormals flushing = flush_denormals();
  step_sums_->write(total);  // the caller may have changed it
  updater_->decide(traits_.sums, pass.stream);
  exchange_->update([&](const ArenaRange& range) { updater_->apply(range, pass.stream); }, pass.stream);
  exchange_->publish(updater_->outcome(), pass.stream);
  updater_->average(pass.stream);
  return count_step(queue_->outcome_by_hand(), *state_, clock_);
}

// ---- beside steps ---------------------------------------------------------------------------------------------------

std::string MirroredStrategy::explain_nonfinite(const Batch& batch) {
  const FlushDenormals flushing = flush_denormals();
  if (traits_.pace != nullptr)
    if (std::string text = traits_.pace->explain_nonfinite(); !text.empty()) return text;
  return ronda::explain_nonfinite(*replica_, communicator_, shard_.is_empty() ? nullptr : &place(batch),
                                  state_->next_step(), *other_sums_, host_copy_);
}

Evaluation MirroredStrategy::evaluate(BatchLoader& loader, const SeeOutputs& see, const Metrics& metrics) {
  const FlushDenormals flushing = flush_denormals();
  state_->average_states();
  Evaluation evaluation;
  state_->with_average([&] {
    evaluation = ronda::evaluate(*replica_, *queue_, communicator_, loader, state_->updates(), *other_sums_, host_copy_,
                                 see, metrics);
  });
  return evaluation;
}

void MirroredStrategy::keep_data(std::span<const Dataset* const> data) {
  KeptDataOptions kept{.share = options_.device_data_share};
  if (options_.memory_limit > 0) kept.memory_left = options_.memory_limit - plan_.memory.total();  // checked before
  plan_.memory.data = keep_on_devices(communicator_, device(), *queue_, data, options_.platform.gather, kept, sink_);
}

void MirroredStrategy::forget_data() noexcept {
  plan_.memory.data = 0;
  queue_->forget_data();
}

}  // namespace ronda
