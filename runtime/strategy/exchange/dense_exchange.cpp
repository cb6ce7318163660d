#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>
#include <ronda/runtime/strategy/exchange/bucketed_allreduce.hpp>
#include <ronda/runtime/strategy/exchange/dense_exchange.hpp>
#include <ronda/runtime/strategy/exchange/node_reduce.hpp>
#include <ronda/runtime/strategy/exchange/sharded_update.hpp>
#include <ronda/runtime/strategy/exchange/sparse_exchange.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>

#include <utility>

namespace ronda {
namespace {

/// Values in the memory that a node's ranks share. Where there is no room for the gradients, or for them, every rank
/// updates everything: no loss that is worth a second note.
Buffer shared_values(Communicator& communicator, std::size_t bytes, EventSink& sink) {
  const auto notes = communicator.take_notes();
  for (const auto& note : notes) sink.on_message(Severity::warning, note);
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
std::unique_ptr<GradientExchange> make_without_tables(Communicator& communicator, Replica& replica,
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

}  // namespace

bool wants_node_reduce(const Communicator& communicator, const ReplicaPlan& plan, const FusionOptions& options,
                       std::size_t node_update_bytes) {
  const bool in_memory =
      options.algorithm == AllreduceAlgorithm::automatic || options.algorithm == AllreduceAlgorithm::node;
  return in_memory && options.compression == Compression::none && !plan.mixed() && communicator.size() > 1 &&
         plan.dense_slots > 0 && plan.dense_bytes >= node_update_bytes;
}

std::unique_ptr<GradientExchange> make_dense_exchange(Communicator& communicator, Replica& replica,
                                                      const ExchangeSettings& settings, EventSink& sink) {
  auto dense = make_without_tables(communicator, replica, settings.fusion, settings.node_update_bytes, sink);
  if (replica.plan().tables().empty()) return dense;
  return std::make_unique<SparseExchange>(communicator, std::move(dense), replica, settings.fusion.algorithm);
}

}  // namespace ronda
