// What a mirrored strategy keeps from step to step, shown to checkpoints and held to be equal on all ranks.
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

namespace ronda {

void MirroredStrategy::visit(StateVisitor& visitor) {
  replica_->visit_parameters(visitor);
  optimizer_->visit(visitor);
  replica_->visit_states(visitor);
  exchange_->visit(visitor);
}

void MirroredStrategy::set_updates(std::uint64_t updates) {
  if (steps_in_flight() > 0) throw LogicError("set_updates with steps in flight; finish_step gives their results");
  updates_ = updates;
  updater_->set_updates(updates, replica_->stream());
  round_values();
}

void MirroredStrategy::round_values() {
  updater_->round_values(replica_->stream());
  replica_->stream().synchronize();
}

void MirroredStrategy::forget_data() noexcept {
  options_.device_data.clear();
  memory_.data = 0;
  queue_->forget_data();
}

void MirroredStrategy::average_states() { ronda::average_states(replica_->model(), communicator_); }

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
      Error error("the replicas differ: parameters hash to " + all[0] + " on rank 0 and to " + all[rank] + " on rank " +
                  std::to_string(rank));
      error.set_agreed();
      throw error;
    }
  return mine;
}

}  // namespace ronda
