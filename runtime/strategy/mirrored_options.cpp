#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/mirrored_options.hpp>

#include <algorithm>

namespace ronda {

MirroredOptions MirroredOptions::for_data(const Dataset& data, const BatchPlan& plan) {
  MirroredOptions options;
  options.fields.assign(data.fields().begin(), data.fields().end());
  options.batch_capacity = plan.capacity();
  options.global_batch = plan.global_batch();
  options.has_samples = plan.has_samples();
  options.micro_batches = plan.micro_batches();
  return options;
}

MirroredOptions MirroredOptions::completed() const {
  MirroredOptions whole = *this;
  whole.platform = platform.completed(threads);
  whole.steps_in_flight = std::max<std::size_t>(steps_in_flight, 1);
  if (!server_ranks.empty()) whole.servers = static_cast<int>(server_ranks.size());
  if (divide_states) whole.node_update_bytes = 0;
  return whole;
}

Shard shard_of(const Communicator& communicator) noexcept {
  return {static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(communicator.size())};
}

KeyValueOptions MirroredOptions::key_values() const {
  return {.servers = servers,
          .server_ranks = server_ranks,
          .asynchronous = asynchronous,
          .replicas_to_aggregate = replicas_to_aggregate,
          .max_staleness = max_staleness};
}

Shard MirroredOptions::shard(const Communicator& communicator, bool of_step) const {
  if (servers == 0 && server_ranks.empty()) return shard_of(communicator);
  return shard_of(communicator, roles_of(key_values(), communicator.size()), of_step && asynchronous);
}

Shard shard_of(const Communicator& communicator, int servers, bool asynchronous) {
  if (servers == 0) return shard_of(communicator);
  return shard_of(communicator, Roles(communicator.size(), servers), asynchronous);
}

Shard shard_of(const Communicator& communicator, int servers) { return shard_of(communicator, servers, false); }

Shard shard_of(const Communicator& communicator, const Roles& roles, bool asynchronous) {
  const bool works = !roles.is_server(communicator.rank());
  if (asynchronous) return {works ? std::size_t{0} : 1, 1};
  return {static_cast<std::size_t>(works ? roles.index_of(communicator.rank()) : roles.workers()),
          static_cast<std::size_t>(roles.workers())};
}

}  // namespace ronda
