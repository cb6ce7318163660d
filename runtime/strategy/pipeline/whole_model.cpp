#include <ronda/core/error.hpp>
#include <ronda/layers/host_program.hpp>
#include <ronda/runtime/strategy/replica/arena_memory.hpp>
#include <ronda/runtime/strategy/pipeline/whole_model.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

/// The place of a name in a list of the whole model.
template <class Named>
std::size_t place_of(const std::vector<Named>& all, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(all, name, &Named::name) - all.begin());
}

}  // namespace

WholeModel::WholeModel(const StagedModel& model, std::size_t mine, const ComputeDevice& device, bool keeps_average)
    : model_(model), mine_(mine), device_(device) {
  ArenaPlan arena;
  for (std::size_t stage = 0; stage < model.stages(); ++stage)
    offsets_.push_back(arena.reserve(model.plan(stage).arena_bytes));
  values_ = std::make_shared<Buffer>(
      allocate_arena(place_before(ArenaPlace::values, offsets_[mine]), arena.bytes(), *device.context));
  if (keeps_average)
    average_ = std::make_shared<Buffer>(
        allocate_arena(place_before(ArenaPlace::average, offsets_[mine]), arena.bytes(), *device.context));
}

Buffer WholeModel::mine_of(const std::shared_ptr<Buffer>& arena) const {
  return {arena->data() + offsets_[mine_], model_.plan(mine_).arena_bytes, arena->device(), arena};
}

void WholeModel::bind(const Replica& replica) {
  parameters_.resize(model_.whole().parameters.size());
  states_.resize(model_.whole().states.size());
  stage_of_state_.resize(states_.size());
  for (std::size_t stage = 0; stage < model_.stages(); ++stage) {
    add_parameters(stage, stage == mine_ ? &replica : nullptr);
    add_states(stage, stage == mine_ ? &replica : nullptr);
  }
}

/// @param replica  null: another rank's
void WholeModel::add_parameters(std::size_t stage, const Replica* replica) {
  const ReplicaPlan& plan = model_.plan(stage);
  for (const GradientSlot& slot : plan.slots) {
    const ParameterRequest& request = plan.requests[index_of(slot.id)];
    const std::size_t place = place_of(model_.whole().parameters, slot.name);
    Parameter& parameter = parameters_[place];
    if (replica != nullptr)
      parameter = replica->parameters()[index_of(slot.id)];
    else
      parameter = {.name = slot.name,
                   .value = Tensor(request.desc, values_->data() + offsets_[stage] + slot.offset, values_->device()),
                   .gradient = {},
                   .master = {},
                   .flattened = request.flattened};
    parameter.id = ParameterId{static_cast<std::uint32_t>(place)};
  }
}

void WholeModel::add_states(std::size_t stage, const Replica* replica) {
  StateList mine;
  if (replica != nullptr) replica->visit_layer_states(mine);
  const std::vector<GraphState>& described = model_.graph(stage).states;
  for (std::size_t i = 0; i < described.size(); ++i) {
    const GraphState& state = described[i];
    const std::size_t place = place_of(model_.whole().states, state.name);
    stage_of_state_[place] = stage;
    if (replica != nullptr) {
      states_[place] = mine.states()[i];
      continue;
    }
    const Buffer& copy = copied_states_.emplace_back(device_.context->allocate(desc_of(state).bytes()));
    states_[place] = {state.name, Tensor(desc_of(state), copy.data(), copy.device()), state.scope};
    set_initial(state, states_[place].tensor);
  }
}

void WholeModel::visit_parameters(StateVisitor& visitor) const {
  for (const Parameter& parameter : parameters_)
    visitor.visit({parameter.name, parameter.trained(), Scope::replicated, parameter.flattened});
}

void WholeModel::visit_average(StateVisitor& visitor) const {
  if (!average_) return;
  for (const Parameter& parameter : parameters_) {
    std::byte* const place = average_->data() + (parameter.value.data() - values_->data());
    visitor.visit({parameter.name + ".ema",
                   {parameter.value.desc(), place, average_->device()},
                   Scope::replicated,
                   parameter.flattened});
  }
}

void WholeModel::visit_layer_states(StateVisitor& visitor) const {
  for (const State& state : states_) visitor.visit(state);
}

Tensor WholeModel::all_values() const {
  return {{Shape{static_cast<std::int64_t>(values_->bytes() / sizeof(float))}, DType::float32, {}},
          values_->data(),
          values_->device()};
}

Tensor WholeModel::block(const Buffer& arena, std::size_t stage) const {
  const auto count = static_cast<std::int64_t>(model_.plan(stage).arena_bytes / sizeof(float));
  return {{Shape{count}, DType::float32, {}}, arena.data() + offsets_[stage], arena.device()};
}

void WholeModel::swap_others() const {
  if (!average_) return;
  for (std::size_t stage = 0; stage < model_.stages(); ++stage) {
    if (stage == mine_) continue;
    const Tensor values = block(*values_, stage);
    std::ranges::swap_ranges(values.as<float>(), block(*average_, stage).as<float>());
  }
}

void WholeModel::restart_average() const {
  if (average_) std::copy_n(values_->data(), values_->bytes(), average_->data());
}

void WholeModel::gather(Communicator& pipeline) const {
  for (std::size_t stage = 0; stage < model_.stages(); ++stage)
    for (const auto& arena : {values_, average_})
      if (arena) pipeline.broadcast(block(*arena, stage), static_cast<int>(stage));
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Tensor& tensor = states_[i].tensor;
    pipeline.broadcast(Tensor({Shape{tensor.desc().padded_count()}, tensor.dtype(), {}}, tensor.data()),
                       static_cast<int>(stage_of_state_[i]));
  }
}

}  // namespace ronda
