#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/optim/pruning.hpp>
#include <ronda/runtime/strategy/parts/parts_optimizer_states.hpp>
#include <ronda/runtime/strategy/parts/parts_state.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace ronda {

PartsState::PartsState(const Parts& given, RankGroups& ranks, const WholeModel& whole, Communicator& alike,
                       std::function<ParameterGroup(std::string_view)> group_of)
    : TrainingState(
          given, std::make_unique<PartsOptimizerStates>(given.communicator, ranks, whole.partition(), given.optimizer)),
      ranks_(ranks),
      whole_(whole),
      alike_(alike),
      group_of_(std::move(group_of)) {}

void PartsState::gather_whole() const {
  whole_.gather(ranks_.group);
  gathered_at_ = updates();
}

/// Otherwise parameters that the caller did not set would go back to their values of the last gathering.
void PartsState::require_gathered() const {
  if (gathered_at_ != updates() && whole_.partition().has_slices())
    throw LogicError(
        "what is set in a split model reaches its parts together with all that is shown, which is older than the last "
        "step: call gather_state on all ranks, before you set");
}

/// Parameters that all ranks have are each rank's own: their hashes differ if a rank made an error.
std::string PartsState::parameter_hash() const {
  gather_whole();
  HostCopy host(parts().replica.device());
  return equal_on_ranks(parts().communicator, hash_of(parameters(), host));
}

void PartsState::broadcast_parameters() {
  require_gathered();
  whole_.broadcast(parts().communicator);
  restart_average();
}

void PartsState::restart_average() {
  TrainingState::restart_average();
  whole_.restart_average();
}

void PartsState::swap_average() {
  TrainingState::swap_average();
  whole_.swap_average();
}

void PartsState::visit(StateVisitor& visitor) {
  whole_.visit_parameters(visitor);
  whole_.visit_average(visitor);
  whole_.visit_layer_states(visitor);
  visit_exchange(visitor);
}

void PartsState::visit_model(StateVisitor& visitor) {
  whole_.visit_parameters(visitor);
  whole_.visit_layer_states(visitor);
}

void PartsState::gather_state() {
  gather_whole();
  divided().gather();
}

void PartsState::average_states() {
  ronda::average_states(parts().replica, alike_, shard_of(alike_), parts().has_samples);
  gather_whole();
}

void PartsState::set_updates(std::uint64_t updates) {
  require_gathered();
  TrainingState::set_updates(updates);
  gathered_at_ = updates;
  whole_.spread();
}

void PartsState::for_each_pruned(FunctionRef<void(const Parameter&)> body) const {
  for (const Parameter& parameter : whole_.parameters()) {
    const ParameterGroup group = group_of_ ? group_of_(parameter.name) : ParameterGroup{};
    if (group.pruned && !group.frozen) body(parameter);
  }
}

/// Every rank prunes the whole parameters, in file layout, so that all choose the same weights.
void PartsState::prune(double share) {
  if (!(share >= 0 && share <= 1)) throw InputError("a share of the weights is from 0 to 1, not " + shortest(share));
  gather_whole();
  std::vector<std::int32_t> magnitudes;
  for_each_pruned([&](const Parameter& parameter) {
    const Tensor average = whole_.average_of(parameter);
    std::vector<float> values = to_file(parameter, parameter.value), averages;
    if (!average.empty()) averages = to_file(parameter, average);
    magnitudes.resize(std::max(magnitudes.size(), values.size()));
    const auto zeros = std::llround(share * static_cast<double>(values.size()));
    ronda::prune(values, averages, static_cast<std::size_t>(zeros), magnitudes);
    from_file(parameter, values, parameter.value);
    if (!average.empty()) from_file(parameter, averages, average);
  });
  whole_.spread();
  set_keeps_zeros(true);
}

TrainingState::Zeros PartsState::zeros() const {
  gather_whole();
  Zeros found;
  for_each_pruned([&](const Parameter& parameter) {
    const std::vector<float> values = to_file(parameter, parameter.value);
    found.weights += values.size();
    found.zeros += static_cast<std::uint64_t>(std::ranges::count(values, 0.0F));
  });
  return found;
}

}  // namespace ronda
