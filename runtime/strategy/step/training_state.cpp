#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>
#include <ronda/runtime/strategy/replica/shared_values.hpp>
#include <ronda/runtime/strategy/step/training_state.hpp>

#include <cmath>

namespace ronda {

std::string TrainingState::parameter_hash() const {
  HostCopy host(parts_.replica.device());
  const bool has_own = writes_values(parts_.replica, parts_.communicator);
  return equal_on_ranks(parts_.communicator, has_own ? hash_of(parameters(), host) : std::string());
}

std::string equal_on_ranks(const Communicator& communicator, const std::string& mine) {
  const auto all = communicator.gather_texts(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0] && !all[rank].empty()) {
      throw as_agreed(Error("the replicas differ: parameters hash to " + all[0] + " on rank 0 and to " + all[rank] +
                            " on rank " + std::to_string(rank)));
    }
  return all[0];
}

void TrainingState::broadcast_parameters() {
  const Buffer& trained = parts_.replica.trained();
  const auto count = static_cast<std::int64_t>(parts_.replica.plan().elements());
  meet();
  if (!parts_.replica.shares_values() || parts_.communicator.topology().nodes > 1)
    parts_.communicator.broadcast(Tensor({Shape{count}, DType::float32, {}}, trained.data(), trained.device()));
  meet();
  if (exchange_.pace != nullptr) exchange_.pace->set_updates(updates_);
  round_values();
  restart_average();
}

void TrainingState::broadcast_states() {
  struct Broadcast final : StateVisitor {
    explicit Broadcast(Communicator& all) : communicator(all) {}
    void visit(const State& state) override {
      const Tensor& tensor = state.tensor;
      if (state.scope == Scope::per_rank) return;
      communicator.broadcast(
          Tensor({Shape{tensor.desc().padded_count()}, tensor.dtype(), {}}, tensor.data(), tensor.device()));
    }
    Communicator& communicator;
  } broadcast(parts_.communicator);
  visit_layer_states(broadcast);
}

void TrainingState::with_average(FunctionRef<void()> body) {
  require_none_in_flight(parts_.queue, "with_average");
  if (parts_.replica.average().bytes() == 0 || shows_average_) return body();
  swap_average();
  try {
    body();
  } catch (const Error& error) {
    if (error.agreed() || !parts_.replica.shares_values()) swap_average();
    throw;
  } catch (...) {  // others may not come to change back what is theirs too
    if (!parts_.replica.shares_values()) swap_average();
    throw;
  }
  swap_average();
}

void TrainingState::swap_average() {
  write_shares(parts_.replica, parts_.communicator, [&] {
    parts_.updater.swap_average(parts_.replica.stream());
    round_values();
  });
  shows_average_ = !shows_average_;
}

void TrainingState::restart_average() {
  Replica& replica = parts_.replica;
  const Buffer& average = replica.average();
  if (average.bytes() == 0) return;
  write_shares(replica, parts_.communicator, [&] {
    const Range part = replica.written();
    const std::size_t first = part.begin * sizeof(float);
    replica.device().context->copy(replica.trained().data() + first, average.data() + first,
                                   part.size() * sizeof(float), replica.stream());
    replica.stream().synchronize();
  });
}

void TrainingState::visit(StateVisitor& visitor) {
  parts_.replica.visit_parameters(visitor);
  parts_.replica.visit_average(visitor);
  parts_.optimizer.visit(visitor);
  parts_.replica.visit_states(visitor);
  visit_exchange(visitor);
}

void TrainingState::visit_model(StateVisitor& visitor) {
  parts_.replica.visit_parameters(visitor);
  parts_.replica.visit_states(visitor);
}

void TrainingState::gather_state() {
  settle();
  give_states(parts_.replica, parts_.communicator, parts_.computing, parts_.has_samples);
  if (parts_.replica.keeps_all_states() && exchange_.kept != nullptr) exchange_.kept->gather(parts_.replica.states());
  divided_->gather();
  meet();  // each rank has written its share of a shared average
}

void TrainingState::settle() {
  if (exchange_.pace != nullptr) exchange_.pace->settle(parts_.replica.stream());
}

void TrainingState::meet() { meet_where_shared(parts_.replica, parts_.communicator); }

void TrainingState::average_states() {
  settle();
  ronda::average_states(parts_.replica, parts_.communicator, parts_.computing, parts_.has_samples);
}

void TrainingState::set_updates(std::uint64_t updates) {
  require_none_in_flight(parts_.queue, "set_updates");
  updates_ = updates;
  parts_.updater.set_updates(updates, parts_.replica.stream());
  if (exchange_.pace != nullptr) exchange_.pace->set_updates(updates);
  round_values();
}

void TrainingState::set_schedule(const Schedule& schedule) {
  require_none_in_flight(parts_.queue, "set_schedule");
  parts_.updater.set_schedule(schedule, parts_.replica.stream());
}

void TrainingState::set_rate_factor(double factor) {
  require_none_in_flight(parts_.queue, "set_rate_factor");
  if (!(factor >= 0) || !std::isfinite(factor))
    throw InputError("a factor of the learning rate is 0 or more, not " + std::to_string(factor));
  parts_.updater.set_rate_factor(factor, parts_.replica.stream());
  rate_factor_ = factor;
}

/// What layers read of the trained parameters, where that is a half type.
void TrainingState::round_values() {
  parts_.updater.round_values(parts_.replica.stream());
  parts_.replica.stream().synchronize();
}

}  // namespace ronda
