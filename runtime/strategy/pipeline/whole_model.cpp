#include <ronda/core/error.hpp>
#include <ronda/layers/host_program.hpp>
#include <ronda/runtime/strategy/pipeline/whole_model.hpp>

#include <algorithm>
#include <utility>

namespace ronda {
namespace {

class States final : public StateVisitor {
 public:
  void visit(const State& state) override { all.push_back(state); }
  std::vector<State> all;
};

/// The place of a name in a list of the whole model.
template <class Named>
std::size_t place_of(const std::vector<Named>& all, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::find(all, name, &Named::name) - all.begin());
}

}  // namespace

WholeModel::WholeModel(const StagedModel& model, std::size_t mine, const ComputeDevice& device)
    : model_(model), mine_(mine), device_(device) {
  ArenaPlan arena;
  for (std::size_t stage = 0; stage < model.stages(); ++stage)
    offsets_.push_back(arena.reserve(model.plan(stage).arena_bytes));
  values_ = std::make_shared<Buffer>(device.context->allocate(arena.bytes()));
}

Buffer WholeModel::values_of_mine() const {
  return {values_->data() + offsets_[mine_], model_.plan(mine_).arena_bytes, values_->device(), values_};
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
  States mine;
  if (replica != nullptr) replica->visit_layer_states(mine);
  const std::vector<GraphState>& described = model_.graph(stage).states;
  for (std::size_t i = 0; i < described.size(); ++i) {
    const GraphState& state = described[i];
    const std::size_t place = place_of(model_.whole().states, state.name);
    stage_of_state_[place] = stage;
    if (replica != nullptr) {
      states_[place] = mine.all[i];
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

void WholeModel::visit_layer_states(StateVisitor& visitor) const {
  for (const State& state : states_) visitor.visit(state);
}

Tensor WholeModel::all_values() const {
  return {{Shape{static_cast<std::int64_t>(values_->bytes() / sizeof(float))}, DType::float32, {}},
          values_->data(),
          values_->device()};
}

Tensor WholeModel::block(std::size_t stage) const {
  const auto count = static_cast<std::int64_t>(model_.plan(stage).arena_bytes / sizeof(float));
  return {{Shape{count}, DType::float32, {}}, values_->data() + offsets_[stage], values_->device()};
}

void WholeModel::gather(Communicator& pipeline) const {
  for (std::size_t stage = 0; stage < model_.stages(); ++stage)
    pipeline.broadcast(block(stage), static_cast<int>(stage));
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Tensor& tensor = states_[i].tensor;
    pipeline.broadcast(Tensor({Shape{tensor.desc().padded_count()}, tensor.dtype(), {}}, tensor.data()),
                       static_cast<int>(stage_of_state_[i]));
  }
}

}  // namespace ronda
