#include <ronda/runtime/strategy/step/mirrored_options.hpp>

#include <algorithm>

namespace ronda {

MirroredOptions MirroredOptions::for_data(const Dataset& data, const BatchPlan& plan) {
  MirroredOptions options;
  options.shape.fields.assign(data.fields().begin(), data.fields().end());
  options.shape.batch_capacity = plan.capacity();
  options.shape.global_batch = plan.global_batch();
  options.shape.has_samples = plan.has_samples();
  options.shape.micro_batches = plan.micro_batches();
  return options;
}

MirroredOptions MirroredOptions::completed() const {
  MirroredOptions whole = *this;
  whole.platform = platform.completed(threads);
  whole.steps_in_flight = std::max<std::size_t>(steps_in_flight, 1);
  return whole;
}

Shard shard_of(const Communicator& communicator) noexcept {
  return {static_cast<std::size_t>(communicator.rank()), static_cast<std::size_t>(communicator.size())};
}

}  // namespace ronda
