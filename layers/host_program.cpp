#include <ronda/layers/host_program.hpp>

#include <algorithm>
#include <utility>

namespace ronda {

namespace {

Graph with_whole_gradients(Graph graph) {
  for (GraphParameter& parameter : graph.parameters) parameter.sparse = false;
  return graph;
}

}  // namespace

HostProgram::HostProgram(Graph graph, Primitives& primitives, Picker& picker, const ProgramOptions& options)
    : program_(with_whole_gradients(std::move(graph)), nullptr, primitives, picker, options) {
  for (const ParameterRequest& request : program_.parameters())
    parameters_.push_back({.id = ParameterId{static_cast<std::uint32_t>(parameters_.size())},
                           .name = request.name,
                           .value = tensor(request.desc),
                           .gradient = options.mode == Mode::training ? tensor(request.desc) : Tensor(),
                           .master = std::nullopt,
                           .flattened = request.flattened});
  for (const GraphState& state : program_.states()) states_.push_back(tensor(desc_of(state)));
  reset_states();
  program_.bind(parameters_, states_, memory_.emplace_back(Buffer::host(program_.buffer_plan().bytes)).data());
}

Tensor HostProgram::tensor(const TensorDesc& desc) {
  return {desc, memory_.emplace_back(Buffer::host(desc.bytes())).data()};
}

void HostProgram::reset_states() {
  for (std::size_t i = 0; i < states_.size(); ++i) set_initial(program_.states()[i], states_[i]);
}

void set_initial(const GraphState& state, const Tensor& tensor) {
  if (state.dtype == DType::float32)
    std::ranges::fill(tensor.as<float>(), state.initial);
  else
    std::fill_n(tensor.data(), tensor.desc().bytes(), std::byte{0});
}

}  // namespace ronda
