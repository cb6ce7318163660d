#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/local_sgd/local_steps.hpp>
#include <ronda/runtime/strategy/exchange/dense_exchange.hpp>
#include <ronda/runtime/strategy/exchange/node_reduce.hpp>
#include <ronda/runtime/strategy/parameter_server/own_pace.hpp>
#include <ronda/runtime/strategy/parameter_server/parameter_servers.hpp>
#include <ronda/runtime/strategy/sharded/sharded_gradients.hpp>
#include <ronda/runtime/strategy/exchange/sharded_update.hpp>
#include <ronda/runtime/strategy/exchange/sparse_exchange.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_plan.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>

#include <utility>

namespace ronda {
namespace {

/// Where gradients and values are to lie so that the ranks of a node reduce and update them in place.
bool wants_node_reduce(const Communicator& communicator, const ReplicaPlan& plan, const FusionOptions& options,
                       std::size_t node_update_bytes) {
  const bool in_memory =
      options.algorithm == AllreduceAlgorithm::automatic || options.algorithm == AllreduceAlgorithm::node;
  return in_memory && options.compression == Compression::none && !plan.mixed() && communicator.size() > 1 &&
         plan.dense_slots > 0 && plan.dense_bytes >= node_update_bytes;
}

/// Values in the memory that a node's ranks share. Where there is no room for the gradients, or for them, every rank
/// updates everything: no loss that is worth a second note.
Buffer shared_values(Communicator& communicator, std::size_t bytes, EventSink& sink) {
  const auto notes = communicator.take_notes();
  for (const auto& note : notes) sink.on_warning(note);
  Buffer values =
      allocate_arena(ArenaPlace::values, bytes, communicator, notes.empty() ? Memory::node_shared : Memory::per_rank);
  static_cast<void>(communicator.take_notes());
  return values;
}

/// Every rank gets all sums of the replica's arena, and updates what it keeps the states of.
std::unique_ptr<GradientExchange> make_allreduce(const Communicator& communicator, std::vector<GradientSlot> slots,
                                                 const Replica& replica, const FusionOptions& options) {
  if (!replica.keeps_all_states())
    return std::make_unique<ShardedUpdate>(communicator, std::move(slots), replica, options,
                                           std::make_unique<GatheredValues>(communicator, replica));
  return std::make_unique<BucketedAllreduce>(communicator, std::move(slots), replica.reduced(), replica.dense_arena(),
                                             options);
}

/// Takes the arenas: the ranks share the memory of the widened gradients.
std::unique_ptr<GradientExchange> make_widened_exchange(Communicator& communicator, Replica& replica,
                                                        std::vector<GradientSlot> slots, const FusionOptions& options) {
  const ReplicaPlan& plan = replica.plan();
  const std::size_t factor = size_of(plan.reduce_dtype) / size_of(plan.dtype);
  for (GradientSlot& slot : slots) {
    slot.offset *= factor;
    slot.bytes *= factor;
  }
  Buffer sums = allocate_arena(ArenaPlace::gradients, factor * plan.arena_bytes, communicator, Memory::node_shared);
  Buffer values, gradients;
  agree(communicator, [&] {
    values = allocate_arena(ArenaPlace::values, plan.arena_bytes, *replica.device().context);
    gradients = replica.device().context->allocate(plan.arena_bytes);
  });
  replica.take_arenas(std::move(values), std::move(gradients), {}, std::move(sums));
  return make_allreduce(communicator, std::move(slots), replica, options);
}

/// Takes the arenas.
std::unique_ptr<GradientExchange> make_dense_exchange(Communicator& communicator, Replica& replica,
                                                      const FusionOptions& options, std::size_t node_update_bytes,
                                                      EventSink& sink) {
  const ReplicaPlan& plan = replica.plan();
  const auto& context = replica.device().context;
  const bool on_host = context->device().kind == DeviceKind::cpu;
  std::vector<GradientSlot> slots(plan.slots.begin(), plan.slots.end() - std::ssize(plan.tables()));
  if (plan.widens()) return make_widened_exchange(communicator, replica, std::move(slots), options);
  Buffer gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, communicator,
                                    on_host ? Memory::node_shared : Memory::on_device);
  Buffer lists;
  if (!plan.tables().empty()) lists = communicator.allocate(plan.list_bytes(), Memory::node_shared);
  if (on_host && wants_node_reduce(communicator, plan, options, node_update_bytes)) {
    replica.take_arenas(shared_values(communicator, plan.arena_bytes, sink), std::move(gradients), std::move(lists));
    if (auto shared = NodeReduce::make(communicator, slots, replica.values(), replica.gradients(),
                                       plan.dense_elements(), options))
      return shared;
  } else {
    Buffer values;
    agree(communicator, [&] { values = allocate_arena(ArenaPlace::values, plan.arena_bytes, *context); });
    replica.take_arenas(std::move(values), std::move(gradients), std::move(lists));
  }
  return make_allreduce(communicator, slots, replica, options);
}

/// Takes the arenas: the values, and their average, once on each node.
std::unique_ptr<GradientExchange> make_update_of_one_copy(Communicator& communicator, Replica& replica,
                                                          const FusionOptions& options, bool keeps_average,
                                                          EventSink& sink) {
  const ReplicaPlan& plan = replica.plan();
  for (const auto& note : communicator.take_notes()) sink.on_warning(note);  // what follows tells of this memory
  Buffer values = allocate_on_node(communicator, ArenaPlace::values, plan.arena_bytes, Memory::one_a_node),
         average = allocate_on_node(communicator, ArenaPlace::average, keeps_average ? plan.arena_bytes : 0,
                                    Memory::one_a_node),
         gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, communicator, Memory::node_shared);
  for (const auto& note : communicator.take_notes()) sink.on_warning(note);
  replica.take_arenas(std::move(values), std::move(gradients), {});
  const Topology& topology = communicator.topology();
  replica.share_values(std::move(average),
                       share_of_rank(plan.elements(), static_cast<std::size_t>(topology.rank_on_node),
                                     static_cast<std::size_t>(topology.ranks_on_node)));
  if (wants_node_reduce(communicator, plan, options, 0))
    if (auto shared = NodeReduce::make(communicator, plan.slots, replica.values(), replica.gradients(),
                                       plan.dense_elements(), options))
      return shared;
  return std::make_unique<ShardedUpdate>(communicator, plan.slots, replica, options,
                                         std::make_unique<GatheredOneCopy>(communicator, replica));
}

/// Takes the arenas.
std::unique_ptr<GradientExchange> make_local_steps(Communicator& communicator, Replica& replica,
                                                   const FusionOptions& options, const LocalSgd& local) {
  const ReplicaPlan& plan = replica.plan();
  agree(communicator, [&] {
    check(local);
    require_local_steps(replica);
  });
  Buffer gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, communicator, Memory::node_shared), values;
  agree(communicator,
        [&] { values = allocate_arena(ArenaPlace::values, plan.arena_bytes, *replica.device().context); });
  replica.take_arenas(std::move(values), std::move(gradients), {});
  return std::make_unique<LocalSteps>(communicator, plan.slots, replica, local, options);
}

/// Takes the arenas.
std::unique_ptr<GradientExchange> make_parameter_servers(const Communicator& communicator, Replica& replica,
                                                         const FusionOptions& options, const ParameterServer& servers) {
  const bool own_pace = servers.own_pace();
  agree(communicator, [&] {
    require_sense(servers.key_values(), communicator.size());
    if (own_pace && !replica.program().rank_sums().empty())
      throw InputError(
          "layers that add up over all workers, as a SyncBatchNorm does, need them in one step; take a BatchNorm, or "
          "neither .asynchronous nor .replicas_to_aggregate");
    check(servers, {.allreduce = options.algorithm, .compression = options.compression});
    if (own_pace && !replica.plan().tables().empty())
      throw InputError("the rows of " + replica.plan().tables().front().name +
                       ", whose gradient is sparse, need all workers in one step; take an embedding with .sparse = "
                       "false, or neither .asynchronous nor .replicas_to_aggregate");
    take_own_arenas(replica);
  });
  if (own_pace) return OwnPace::make(communicator, servers.key_values(), replica.plan().slots, replica, options);
  return std::make_unique<ParameterServers>(communicator, servers.roles(communicator.size()), replica, options);
}

}  // namespace

void take_own_arenas(Replica& replica) {
  const ReplicaPlan& plan = replica.plan();
  DeviceContext& context = *replica.device().context;
  Buffer gradients = allocate_arena(ArenaPlace::gradients, plan.arena_bytes, context),
         lists = context.allocate(plan.list_bytes());
  replica.take_arenas(allocate_arena(ArenaPlace::values, plan.arena_bytes, context), std::move(gradients),
                      std::move(lists));
}

std::unique_ptr<GradientExchange> make_exchange(Communicator& communicator, Replica& replica, FusionOptions options,
                                                std::size_t node_update_bytes, EventSink& sink,
                                                const StrategyOptions& strategy, bool keeps_average) {
  const auto& context = replica.device().context;
  const DeviceKind kind = context->device().kind;
  agree(communicator, [&] { require_fitting(options.algorithm, kind); });
  if (kind != DeviceKind::cpu && communicator.devices().empty()) communicator.use_device(context, options.algorithm);
  options.dtype = replica.plan().reduce_dtype;
  if (const auto* servers = strategy.as<ParameterServer>())
    return make_parameter_servers(communicator, replica, options, *servers);
  if (const auto* local = strategy.as<LocalSgd>()) return make_local_steps(communicator, replica, options, *local);
  const bool one_copy = has_one_copy(strategy, communicator);
  if (shards_gradients(strategy, communicator))
    return make_sharded_gradients(communicator, replica, options, one_copy, keeps_average, sink);
  if (one_copy) return make_update_of_one_copy(communicator, replica, options, keeps_average, sink);
  auto dense = make_dense_exchange(communicator, replica, options, node_update_bytes, sink);
  if (replica.plan().tables().empty()) return dense;
  return std::make_unique<SparseExchange>(communicator, std::move(dense), replica, options.algorithm);
}

}  // namespace ronda
