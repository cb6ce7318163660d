// How a mirrored strategy is planned and takes its memory; mirrored_strategy.cpp has its steps.
#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/arena_shares.hpp>
#include <ronda/runtime/strategy/cost_table.hpp>
#include <ronda/runtime/strategy/exchange/make_exchange.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/replica_updater.hpp>
#include <ronda/runtime/strategy/shared_values.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// Of what `ranks` have together.
std::size_t share_of_bytes(std::size_t bytes, std::size_t ranks) { return (bytes + ranks - 1) / ranks; }

}  // namespace

MirroredStrategy::MirroredStrategy(Communicator communicator, const Layer& model, const Loss& loss,
                                   std::unique_ptr<Optimizer> optimizer, Schedule schedule,
                                   const MirroredOptions& options, EventSink* sink)
    : communicator_(std::move(communicator)),
      sink_(sink != nullptr ? *sink : silence_),
      options_(options.completed()),
      shard_(options_.shard(communicator_, true)),
      test_shard_(options_.shard(communicator_, false)),
      optimizer_(std::move(optimizer)),
      host_copy_(options_.platform.device) {
  const ComputeDevice& device = options_.platform.device;
  use_threads(options_.threads);
  RankPicker picker(communicator_, options_.picks, options_.plan_name, sink_);
  agree(communicator_, [&] { plan_replica(model, loss, picker); });
  check_memory();
  agree(communicator_,
        [&] { replica_->take_memory(optimizer_->states().size(), plan_.states, keeps_average() && !one_copy()); });
  exchange_ = make_exchange(communicator_, *replica_, options_.fusion, options_.node_update_bytes, sink_,
                            options_.local_sgd, options_.key_values(), one_copy(), keeps_average());
  for (const auto& line : exchange_->describe()) plan_.lines.push_back(line);
  plan_rank_sums();
  agree(communicator_, [&] { take_memory(schedule); });
  keep_data(options_.device_data);
  options_.device_data.clear();  // they may go before the strategy
  plan_.memory.exchange = device.context->device().kind == DeviceKind::cpu ? exchange_->memory() : 0;
  check_memory();
  plan_.picks = picker.answered();
  plan_.timed_something = picker.timed_something();
  plan_.require_equal_on(communicator_);
  agree(communicator_, [&] {
    if (writes_values(*replica_, communicator_)) replica_->initialize(options_.initializer, options_.seed);
  });
  state_->broadcast_parameters();
  tell_plan();
}

MirroredStrategy::~MirroredStrategy() {
  if (queue_) drain();
}

void MirroredStrategy::plan_replica(const Layer& model, const Loss& loss, Picker& picker) {
  replica_ = std::make_unique<Replica>(model, loss, options_.platform.device, options_.platform.primitives, picker,
                                       options_.fields, options_.batch_capacity, options_.global_batch, options_.seed,
                                       options_.reduce_dtype);
  const ReplicaPlan& planned = replica_->plan();
  const BufferPlan& buffers = replica_->program().buffer_plan();
  const std::size_t exact = planned.elements() * sizeof(float);
  plan_.device = options_.platform.device;
  plan_.batch_capacity = options_.batch_capacity;
  plan_.outputs = replica_->program().output().shape;
  if (options_.servers > 0 && (options_.divide_states || options_.local_sgd))
    throw InputError("servers have all of the optimizer's states: give .servers without .divide_states and .local_sgd");
  if (options_.servers > 0)
    require_servable(planned, *optimizer_, options_.platform.device);
  else if (options_.divide_states)
    require_divisible(planned, *optimizer_, options_.platform.device);
  if (options_.one_copy && !options_.divide_states)
    throw InputError(
        "one copy of the parameters (.one_copy) is for ranks that each update a part of them, with .strategy = "
        "sharded");
  const std::size_t sharing = one_copy() ? static_cast<std::size_t>(communicator_.topology().ranks_on_node) : 1;
  if (const auto all = shares(); all.size() > 1) plan_.states = all[static_cast<std::size_t>(communicator_.rank())];
  const std::size_t kept = plan_.states ? plan_.states->size() * sizeof(float) : exact;
  plan_.memory = {
      .parameters = share_of_bytes(planned.arena_bytes, sharing) + (planned.mixed() ? exact : 0),
      .gradients =
          planned.arena_bytes + planned.list_bytes() +
          (planned.widens() ? exact : GradientAccumulator::bytes(planned.dense_elements(), options_.micro_batches)),
      .optimizer = kept * optimizer_->states().size() + (keeps_average() ? share_of_bytes(exact, sharing) : 0),
      .activations = buffers.bytes - buffers.scratch_bytes + bytes_of_queue(options_.platform.device, queue_options()),
      .workspace = buffers.scratch_bytes};
  plan_.lines = planned.lines;
}

/// Of the optimizer's states, by rank; empty: all ranks have all.
std::vector<Range> MirroredStrategy::shares() const {
  const std::size_t count = replica_->plan().elements();
  if (options_.servers > 0) return shares_of_servers(count, roles_of(options_.key_values(), communicator_.size()));
  if (options_.divide_states) return shares_of_ranks(count, static_cast<std::size_t>(communicator_.size()));
  return {};
}

void MirroredStrategy::plan_rank_sums() {
  const auto counts = replica_->program().rank_sums();
  Communicator computing = communicator_;
  if (options_.servers > 0 && !counts.empty())
    computing = communicator_.split(shard_.is_empty() ? 1 : 0, communicator_.rank());
  if (computing.size() > 1 && !shard_.is_empty()) rank_sums_ = std::make_unique<PlannedRankSums>(computing, counts);
}

StepQueueOptions MirroredStrategy::queue_options() const {
  return {.fields = options_.fields,
          .rows = options_.batch_capacity,
          .micro_batches = options_.micro_batches,
          .in_flight = options_.steps_in_flight,
          .record = options_.record_steps && (!exchange_ || exchange_->moves_alone())};
}

void MirroredStrategy::check_memory() const {
  agree(communicator_, [&] {
    check_memory_limit(plan_.memory, options_.memory_limit, options_.batch_capacity, options_.micro_batches);
  });
}

/// All that works on the arenas, once they are there.
void MirroredStrategy::take_memory(const Schedule& schedule) {
  const ComputeDevice& device = options_.platform.device;
  replica_->bind();
  accumulator_ = std::make_unique<GradientAccumulator>(*replica_, options_.micro_batches);
  updater_ = make_updater(options_, *replica_, *optimizer_, schedule);
  step_sums_ = std::make_unique<ControlBlock>(device, exchange_->sums());
  other_sums_ = std::make_unique<ControlBlock>(device);
  queue_ = make_step_queue(device, communicator_, {&exchange_->sums(), updater_->outcome()}, queue_options());
  state_ = std::make_unique<TrainingState>(TrainingState::Parts{communicator_, *replica_, *optimizer_, *updater_,
                                                                *exchange_, *queue_, shares(), test_shard_});
}

void MirroredStrategy::tell_plan() {
  for (const auto& line : communicator_.devices()) sink_.on_detail(line);
  for (const auto& note : communicator_.take_notes()) sink_.on_warning(note);
  for (const auto& line : plan_.lines) sink_.on_detail(line);
  for (const auto& request : replica_->program().buffer_requests())
    if (request.bytes > 0) sink_.on_detail("memory for " + request.owner + ": " + human_bytes(request.bytes));
  const auto all_shares = shares();
  for (std::size_t rank = 0; options_.servers > 0 && rank < all_shares.size(); ++rank) {
    if (!roles_of(options_.key_values(), communicator_.size()).is_server(static_cast<int>(rank))) continue;
    sink_.on_detail("server rank " + std::to_string(rank) + " updates elements " +
                    std::to_string(all_shares[rank].begin) + " to " + std::to_string(all_shares[rank].end) + " of " +
                    std::to_string(replica_->plan().elements()) +
                    ", and keeps the optimizer's states of these alone; workers keep none");
  }
  if (options_.servers == 0 && plan_.states)
    sink_.on_detail("this rank updates elements " + std::to_string(plan_.states->begin) + " to " +
                    std::to_string(plan_.states->end) + " of " + std::to_string(replica_->plan().elements()) +
                    ", and keeps the optimizer's states of these alone");
  if (one_copy())
    sink_.on_detail("the " + std::to_string(communicator_.topology().ranks_on_node) +
                    " ranks of a node share one copy of the parameters, " + human_bytes(replica_->plan().arena_bytes));
  sink_.on_detail(plan_.memory.text());
  if (!sink_.wants_details()) return;
  const FlushDenormals flushing = flush_denormals();
  for (const auto& line : cost_table(replica_->measure(options_.fields))) sink_.on_detail(line);
}

}  // namespace ronda
