#include <ronda/runtime/key_value/key_value_roles.hpp>
#include <ronda/runtime/strategy/mirrored_options.hpp>

#include <algorithm>

namespace ronda {

MirroredOptions MirroredOptions::for_data(const Dataset& data, const BatchPlan& plan) {
  MirroredOptions options;
  options.fields.assign(data.fields().begin(), data.fields().end());
  options.batch_capacity = plan.capacity();
  options.global_batch = plan.global_batch();
  options.micro_batches = plan.micro_batches();
  return options;
}

MirroredOptions MirroredOptions::completed() const {
  MirroredOptions whole = *this;
  whole.platform = platform.completed(threads);
  whole.steps_in_flight = std::max<std::size_t>(steps_in_flight, 1);
  if (divide_states) whole.node_update_bytes = 0;
  return whole;
}

Shard shard_of(const Communicator& communicator) noexcept {
  return {static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(communicator.size())};
}

KeyValueOptions MirroredOptions::key_values() const {
  return {.servers = servers,
          .asynchronous = asynchronous,
          .replicas_to_aggregate = replicas_to_aggregate,
          .max_staleness = max_staleness};
}

Shard shard_of(const Communicator& communicator, int servers, bool asynchronous) {
  const Shard shard = shard_of(communicator, servers);
  if (!asynchronous || servers == 0) return shard;
  return {shard.is_empty() ? std::size_t{1} : 0, 1};
}

Shard shard_of(const Communicator& communicator, int servers) {
  if (servers == 0) return shard_of(communicator);
  const KeyValueRoles roles(communicator.size(), servers);
  return {static_cast<std::size_t>(std::min(communicator.rank(), roles.workers())),
          static_cast<std::size_t>(roles.workers())};
}

}  // namespace ronda
