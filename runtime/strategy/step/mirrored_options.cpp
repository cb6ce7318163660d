#include <ronda/runtime/key_value/roles.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>

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
  if (strategy.as<Sharded>() != nullptr) whole.node_update_bytes = 0;
  return whole;
}

Shard shard_of(const Communicator& communicator) noexcept {
  return {static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(communicator.size())};
}

Shard shard_of(const Communicator& communicator, const StrategyOptions& strategy, bool of_step) {
  if (const auto* servers = strategy.as<ParameterServer>())
    return shard_of(communicator, servers->roles(communicator.size()), of_step && servers->asynchronous);
  const Shard shard = shard_of(communicator);
  if (const auto* pipeline = strategy.as<Pipeline>()) return pipeline->shard(shard.index, shard.count);
  const auto* split = strategy.as<Split>();
  return split != nullptr ? split->shard(shard.index, shard.count) : shard;
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
