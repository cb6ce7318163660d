#include <ronda/core/error.hpp>
#include <ronda/core/shortest.hpp>
#include <ronda/optim/pruning.hpp>
#include <ronda/runtime/strategy/step/evaluation.hpp>
#include <ronda/runtime/strategy/split/sliced_states.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/split/split_state.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

namespace ronda {

SplitState::SplitState(const Parts& given, RankGroups& ranks, const SplitModel& model, const WholeValues& whole,
                       std::function<ParameterGroup(std::string_view)> group_of)
    : TrainingState(given, std::make_unique<SlicedStates>(given.communicator, ranks, model, given.optimizer)),
      ranks_(ranks),
      whole_(whole),
      group_of_(std::move(group_of)) {}

/// Parameters of which all ranks have all are each rank's own here: they differ where a rank made an error.
std::string SplitState::parameter_hash() const {
  gather_whole();
  HostCopy host(parts().replica.device());
  return equal_on_ranks(parts().communicator, hash_of(parameters(), host));
}

/// Else what is not set would become what it was at the last gathering.
void SplitState::require_gathered() const {
  if (gathered_at_ != updates())
    throw LogicError(
        "what is set in a split model reaches its parts together with all that is shown, which is older than the last "
        "step: call gather_state on all ranks, before you set");
}

/// Shows all ranks' parts.
void SplitState::gather_whole() const {
  whole_.gather(ranks_.group);
  gathered_at_ = updates();
}

void SplitState::broadcast_parameters() {
  require_gathered();
  parts().communicator.broadcast(whole_.all());
  whole_.restart_average();
  whole_.spread();
}

void SplitState::restart_average() {
  TrainingState::restart_average();
  whole_.restart_average();
}

void SplitState::swap_average() {
  TrainingState::swap_average();
  whole_.swap_average();
}

void SplitState::visit(StateVisitor& visitor) {
  whole_.visit_parameters(visitor);
  whole_.visit_average(visitor);
  parts().replica.visit_states(visitor);
  visit_exchange(visitor);
}

void SplitState::visit_model(StateVisitor& visitor) {
  whole_.visit_parameters(visitor);
  parts().replica.visit_states(visitor);
}

void SplitState::gather_state() {
  gather_whole();
  divided().gather();
}

void SplitState::average_states() {
  // All ranks of a group have them, and after a checkpoint of another strategy others each: so the mean is over all.
  ronda::average_states(parts().replica, parts().communicator, shard_of(parts().communicator), parts().has_samples);
  gather_whole();
}

void SplitState::set_updates(std::uint64_t updates) {
  require_gathered();
  TrainingState::set_updates(updates);
  gathered_at_ = updates;
  whole_.spread();
}

void SplitState::for_each_pruned(FunctionRef<void(const Parameter&, const Tensor&)> body) const {
  for (const Parameter& parameter : whole_.parameters()) {
    const ParameterGroup group = group_of_ ? group_of_(parameter.name) : ParameterGroup{};
    if (group.pruned && !group.frozen) body(parameter, whole_.average_of(parameter));
  }
}

/// Which weights are the smallest is the whole parameter's question.
void SplitState::prune(double share) {
  if (!(share >= 0 && share <= 1)) throw InputError("a share of the weights is from 0 to 1, not " + shortest(share));
  gather_whole();
  std::vector<std::int32_t> magnitudes;
  for_each_pruned([&](const Parameter& parameter, const Tensor& average) {
    const std::span<float> values = parameter.value.as<float>();
    magnitudes.resize(std::max(magnitudes.size(), values.size()));
    ronda::prune(values, average.empty() ? std::span<float>() : average.as<float>(),
                 static_cast<std::size_t>(std::llround(share * static_cast<double>(values.size()))), magnitudes);
  });
  whole_.spread();
  set_keeps_zeros(true);
}

TrainingState::Zeros SplitState::zeros() const {
  gather_whole();
  Zeros found;
  for_each_pruned([&](const Parameter& parameter, const Tensor&) {
    const std::span<const float> values = parameter.value.as<const float>();
    found.weights += values.size();
    found.zeros += static_cast<std::uint64_t>(std::ranges::count(values, 0.0F));
  });
  return found;
}

}  // namespace ronda
