#include <ronda/core/counted.hpp>
#include <ronda/core/denormals.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/replica/cost_table.hpp>
#include <ronda/runtime/strategy/sharded/sharded_gradients.hpp>
#include <ronda/runtime/strategy/step/gradient_accumulator.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_plan.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>

#include <string>

namespace ronda {
namespace {

/// Of what `ranks` have together.
std::size_t share_of_bytes(std::size_t bytes, std::size_t ranks) { return (bytes + ranks - 1) / ranks; }

void require_possible(const MirroredOptions& options, const ReplicaPlan& planned, const Optimizer& optimizer) {
  if (options.strategy.as<ParameterServer>() != nullptr) require_servable(planned, optimizer, options.platform.device);
  if (options.strategy.as<Pipeline>() != nullptr || options.strategy.as<Split>() != nullptr)
    throw InputError(".strategy = " + std::string(options.strategy.name()) +
                     " was given to a MirroredStrategy, whose ranks have the whole model; make it by make_strategy");
  if (options.make_exchange && (options.strategy.as<Mirrored>() == nullptr || planned.widens()))
    throw InputError(
        ".make_exchange replaces the exchange of .strategy = mirrored, and sums gradients in their own type; leave "
        ".strategy and .reduce_dtype out");
  const auto* sharded = options.strategy.as<Sharded>();
  if (sharded == nullptr) return;
  require_divisible(planned, optimizer, options.platform.device);
  if (sharded->one_copy) require_shareable(planned);
  if (sharded->shard_gradients) require_sharded_gradients(planned, optimizer, options.fusion);
}

std::size_t bytes_of_gradients(const MirroredOptions& options, const Replica& replica,
                               const Communicator& communicator) {
  const ReplicaPlan& planned = replica.plan();
  if (shards_gradients(options.strategy, communicator))
    return bytes_of_sharded_gradients(replica, options.fusion, communicator.size());
  const std::size_t summed = planned.widens()
                                 ? planned.elements() * sizeof(float)
                                 : GradientAccumulator::bytes(planned.dense_elements(), options.micro_batches);
  return planned.arena_bytes + planned.list_bytes() + summed;
}

std::string elements(const Range& range, std::size_t all) {
  return "elements " + std::to_string(range.begin) + " to " + std::to_string(range.end) + " of " + std::to_string(all);
}

/// Who updates what, where ranks have shares.
void tell_shares(const StrategyPlan& plan, const MirroredOptions& options, int ranks, std::size_t count,
                 EventSink& sink) {
  if (!plan.states) return;
  const auto* servers = options.strategy.as<ParameterServer>();
  if (servers == nullptr) {
    const auto* sharded = options.strategy.as<Sharded>();
    const std::string kept = sharded != nullptr && sharded->shard_gradients ? " and the sums of gradients" : "";
    sink.on_detail("this rank updates " + elements(*plan.states, count) + ", and keeps the optimizer's states" + kept +
                   " of these alone");
    return;
  }
  const Roles roles = servers->roles(ranks);
  const auto shares = shares_of_servers(count, roles);
  for (int rank = 0; rank < ranks; ++rank)
    if (roles.is_server(rank))
      sink.on_detail("server rank " + std::to_string(rank) + " updates " +
                     elements(shares[static_cast<std::size_t>(rank)], count) +
                     ", and keeps the optimizer's states of these alone; workers keep none");
}

}  // namespace

bool has_one_copy(const StrategyOptions& strategy, const Communicator& communicator) noexcept {
  const auto* sharded = strategy.as<Sharded>();
  return sharded != nullptr && sharded->one_copy && communicator.size() > 1;
}

bool shards_gradients(const StrategyOptions& strategy, const Communicator& communicator) noexcept {
  const auto* sharded = strategy.as<Sharded>();
  return sharded != nullptr && sharded->shard_gradients && communicator.size() > 1;
}

std::vector<Range> shares_of_states(const StrategyOptions& strategy, int ranks, std::size_t elements) {
  if (const auto* servers = strategy.as<ParameterServer>()) return shares_of_servers(elements, servers->roles(ranks));
  if (strategy.as<Sharded>() != nullptr) return shares_of_ranks(elements, static_cast<std::size_t>(ranks));
  return {};
}

StepQueueOptions queue_options(const MirroredOptions& options) {
  return {.fields = options.fields,
          .rows = options.batch_capacity,
          .micro_batches = options.micro_batches,
          .in_flight = options.steps_in_flight,
          .record = options.record_steps};
}

StrategyPlan plan_mirrored(const MirroredOptions& options, const Replica& replica, const Optimizer& optimizer,
                           const Communicator& communicator) {
  const ReplicaPlan& planned = replica.plan();
  require_possible(options, planned, optimizer);
  const BufferPlan& buffers = replica.program().buffer_plan();
  const std::size_t exact = planned.elements() * sizeof(float);
  StrategyPlan plan;
  plan.device = options.platform.device;
  plan.batch_capacity = options.batch_capacity;
  plan.outputs = replica.program().output().shape;
  const auto sharing = has_one_copy(options.strategy, communicator)
                           ? static_cast<std::size_t>(communicator.topology().ranks_on_node)
                           : 1;
  if (const auto shares = shares_of_states(options.strategy, communicator.size(), planned.elements());
      shares.size() > 1)
    plan.states = shares[static_cast<std::size_t>(communicator.rank())];
  const std::size_t kept = plan.states ? plan.states->size() * sizeof(float) : exact;
  plan.memory = {
      .parameters = share_of_bytes(planned.arena_bytes, sharing) + (planned.mixed() ? exact : 0),
      .gradients = bytes_of_gradients(options, replica, communicator),
      .optimizer = kept * optimizer.states().size() + (options.ema_decay > 0 ? share_of_bytes(exact, sharing) : 0),
      .activations =
          buffers.bytes - buffers.scratch_bytes + bytes_of_queue(options.platform.device, queue_options(options)),
      .workspace = buffers.scratch_bytes};
  plan.lines = planned.lines;
  return plan;
}

void tell_plan(const StrategyPlan& plan, const MirroredOptions& options, Communicator& communicator, Replica& replica,
               EventSink& sink) {
  for (const auto& line : communicator.devices()) sink.on_detail(line);
  for (const auto& note : communicator.take_notes()) sink.on_warning(note);
  for (const auto& line : plan.lines) sink.on_detail(line);
  for (const auto& request : replica.program().buffer_requests())
    if (request.bytes > 0) sink.on_detail("memory for " + request.owner + ": " + human_bytes(request.bytes));
  tell_shares(plan, options, communicator.size(), replica.plan().elements(), sink);
  if (has_one_copy(options.strategy, communicator))
    sink.on_detail("the " + std::to_string(communicator.topology().ranks_on_node) +
                   " ranks of a node share one copy of the parameters, " + human_bytes(replica.plan().arena_bytes));
  sink.on_detail(plan.memory.text());
  if (!sink.wants_details()) return;
  const FlushDenormals flushing(replica.stream().threads());
  for (const auto& line : cost_table(replica.measure(options.fields))) sink.on_detail(line);
}

}  // namespace ronda
