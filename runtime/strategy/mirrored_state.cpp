// What a mirrored strategy keeps from step to step, shown to checkpoints and held to be equal on all ranks.
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/kept_data.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

#include <cmath>

namespace ronda {

void MirroredStrategy::visit(StateVisitor& visitor) {
  replica_->visit_parameters(visitor);
  optimizer_->visit(visitor);
  replica_->visit_states(visitor);
  exchange_->visit(visitor);
}

void MirroredStrategy::visit_model(StateVisitor& visitor) {
  replica_->visit_parameters(visitor);
  replica_->visit_states(visitor);
}

void MirroredStrategy::set_updates(std::uint64_t updates) {
  require_none_in_flight("set_updates");
  updates_ = updates;
  updater_->set_updates(updates, replica_->stream());
  round_values();
}

void MirroredStrategy::set_schedule(const Schedule& schedule) {
  require_none_in_flight("set_schedule");
  updater_->set_schedule(schedule, replica_->stream());
}

void MirroredStrategy::set_rate_factor(double factor) {
  require_none_in_flight("set_rate_factor");
  if (!(factor >= 0) || !std::isfinite(factor))
    throw InputError("a factor of the learning rate is 0 or more, not " + std::to_string(factor));
  updater_->set_rate_factor(factor, replica_->stream());
  rate_factor_ = factor;
}

void MirroredStrategy::require_none_in_flight(std::string_view function) const {
  if (steps_in_flight() > 0)
    throw LogicError(std::string(function) + " with steps in flight; finish_step gives their results");
}

void MirroredStrategy::round_values() {
  updater_->round_values(replica_->stream());
  replica_->stream().synchronize();
}

void MirroredStrategy::keep_data(std::span<const Dataset* const> data) {
  KeptDataOptions kept{.share = options_.device_data_share};
  if (options_.memory_limit > 0) kept.memory_left = options_.memory_limit - memory_.total();  // checked before
  memory_.data = keep_on_devices(communicator_, device(), *queue_, data, options_.platform.gather, kept, sink_);
}

void MirroredStrategy::forget_data() noexcept {
  memory_.data = 0;
  queue_->forget_data();
}

void MirroredStrategy::average_states() { ronda::average_states(*replica_, communicator_); }

void MirroredStrategy::gather_state() { exchange_->gather(replica_->states()); }

void MirroredStrategy::broadcast_parameters() {
  const Buffer& trained = replica_->trained();
  const auto count = static_cast<std::int64_t>(replica_->plan().elements());
  communicator_.broadcast(Tensor({Shape{count}, DType::float32, {}}, trained.data(), trained.device()));
  round_values();
}

std::string MirroredStrategy::parameter_hash() const {
  HostCopy host(options_.platform.device);
  std::string mine = hash_of(parameters(), host);
  const auto all = communicator_.gather_texts(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0]) {
      throw as_agreed(Error("the replicas differ: parameters hash to " + all[0] + " on rank 0 and to " + all[rank] +
                            " on rank " + std::to_string(rank)));
    }
  return mine;
}

}  // namespace ronda
