#include <ronda/core/error.hpp>
#include <ronda/runtime/onnx/onnx_writer.hpp>
#include <ronda/runtime/onnx/operations/onnx_export.hpp>
#include <ronda/runtime/onnx/operations/translate.hpp>

#include <algorithm>

namespace ronda {

OnnxValue described(const std::string& name, const Value& value) {
  Shape sample = value.shape.without_batch();
  if (is_image(value.shape) && value.dtype == DType::float32) sample = {sample[2], sample[0], sample[1]};
  return {name, sample, value.dtype, {}};
}

OnnxExport::OnnxExport(const Graph& graph, std::span<const NamedTensor> tensors, const std::filesystem::path& source)
    : graph_(graph), source_(source) {
  std::set<std::string_view> known;
  for (const NamedTensor& tensor : tensors) tensors_.emplace(tensor.name, &tensor);
  for (const GraphParameter& parameter : graph.parameters) known.insert(expect(parameter.name, parameter.shape).name);
  for (const GraphState& state : graph.states)
    known.insert(state.dtype == DType::float32 ? expect(state.name, state.shape).name : state.name);
  for (const NamedTensor& tensor : tensors)
    if (!known.contains(tensor.name))
      throw InputError(source.string() + ": the model has no " + tensor.name + "; was it saved by another model?");
  for (const std::string_view name : known) taken_.emplace(name);
}

const NamedTensor& OnnxExport::expect(const std::string& name, const Shape& shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end())
    throw InputError(source_.string() + ": the model's " + name + " is not there; was it saved by another model?");
  if (found->second->shape != shape)
    throw InputError(source_.string() + ": " + name + " has shape " + found->second->shape.text() + ", the model's " +
                     shape.text());
  if (static_cast<std::int64_t>(found->second->values.size()) != shape.count())
    throw InputError(source_.string() + ": " + name + " is not of float32");
  return *found->second;
}

std::string OnnxExport::tensor(const std::string& name) {
  if (written_.insert(name).second) {
    const NamedTensor& tensor = *tensors_.find(name)->second;
    model_.tensors.push_back({name, tensor.shape, std::span<const float>(tensor.values)});
  }
  return name;
}

std::string OnnxExport::state(StateId id) {
  const GraphState& state = graph_.states[static_cast<std::size_t>(id)];
  if (state.dtype != DType::float32) throw LogicError("the state " + state.name + " is not of float32");
  return tensor(state.name);
}

std::string OnnxExport::new_name(const std::string& wish) {
  std::string name = wish;
  for (int i = 2; !taken_.insert(name).second; ++i) name = wish + "_" + std::to_string(i);
  return name;
}

OnnxModel OnnxExport::run() {
  for (const GraphInput& input : graph_.inputs) {
    const std::string name = new_name(input.field);
    model_.inputs.push_back(described(name, graph_.values[input.value]));
    names_[input.value] = name;
  }
  for (const GraphNode& node : graph_.nodes) {
    OnnxWriter writer(*this, node);
    names_[node.output] = translate(node, writer);
  }
  name_output();
  return std::move(model_);
}

/// The model's output has a name of its own, `output`.
void OnnxExport::name_output() {
  const std::string last = name(graph_.output), name = new_name("output");
  const auto maker = std::ranges::find(model_.nodes, last, &OnnxNode::output);
  if (maker == model_.nodes.end()) {
    model_.nodes.push_back({"Identity", {last}, name, {}});
  } else {
    maker->output = name;
    for (OnnxNode& node : model_.nodes) std::ranges::replace(node.inputs, last, name);
  }
  model_.outputs.push_back(described(name, graph_.values[graph_.output]));
}

}  // namespace ronda
