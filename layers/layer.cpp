#include <ronda/core/error.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/layer.hpp>

#include <algorithm>

namespace ronda {
namespace {

/// The graph without nodes whose values nobody reads.
void drop_dead_nodes(Graph& graph) {
  std::vector<bool> read(graph.values.size());
  read[graph.output] = true;
  std::vector<GraphNode> alive;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!read[node->output]) continue;
    for (const std::size_t input : node->inputs) read[input] = true;
    alive.push_back(std::move(*node));
  }
  std::ranges::reverse(alive);
  graph.nodes = std::move(alive);
}

void require_parameters_are_read(const Graph& graph) {
  std::vector<bool> read(graph.parameters.size());
  for (const GraphNode& node : graph.nodes)
    for (const ParameterId id : node.parameters) read[index_of(id)] = true;
  const auto unread = std::ranges::find(read, false);
  if (unread == read.end()) return;
  throw InputError("the parameter " + graph.parameters[static_cast<std::size_t>(unread - read.begin())].name +
                   " has no part in the model's output, so nothing would train it; leave its layer out");
}

/// Throws if the name is not UTF-8, which files require.
std::string name_in_files(const std::string& layer, std::string_view suffix) {
  std::string name = layer + "." + std::string(suffix);
  if (!is_utf8(name))
    throw InputError("the parameter or state " + printable(name) +
                     " has a name that is not UTF-8: give its layer a kind, and the parameter a name, in UTF-8");
  return name;
}

}  // namespace

void require_normalisable(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    const auto* const spec = std::get_if<BatchNormSpec>(&node.operation);
    const Shape& shape = graph.values[node.inputs.front()].shape;
    if (spec == nullptr || spec->held || spec->synchronized || shape.count() > shape[shape.rank() - 1]) continue;
    throw InputError(node.name + " would normalise one value a channel in training, " + shape.text() +
                     ", and nothing can be learnt behind it: give a rank and micro-batch at least 2 samples (" +
                     setting("batch_size") + "), or take a SyncBatchNorm or a LayerNorm");
  }
}

std::size_t Graph::readers(std::size_t value) const {
  std::size_t count = (value == output ? 1 : 0) + static_cast<std::size_t>(std::ranges::count(passed, value));
  for (const GraphNode& node : nodes) count += static_cast<std::size_t>(std::ranges::count(node.inputs, value));
  return count;
}

GraphBuilder::GraphBuilder(std::span<const Field> fields, std::size_t rows)
    : fields_(fields.begin(), fields.end()), rows_(rows) {
  if (rows == 0) throw InputError("a batch has at least one sample");
}

Value GraphBuilder::input(std::string_view name) {
  const auto known = std::ranges::find(graph_.inputs, name, &GraphInput::field);
  if (known != graph_.inputs.end()) return graph_.values[known->value];
  const auto field = std::ranges::find(fields_, name, &Field::name);
  if (field == fields_.end()) throw InputError("the data has no field '" + std::string(name) + "'");
  if (field->dtype != DType::float32 && field->dtype != DType::int32)
    throw InputError("the model's input '" + field->name + "' is float32 or int32, not " +
                     std::string(name_of(field->dtype)));
  std::vector<std::int64_t> extents{static_cast<std::int64_t>(rows_)};
  extents.insert(extents.end(), field->shape.begin(), field->shape.end());
  const Value value = add(Shape(extents), field->dtype);
  graph_.inputs.push_back({field->name, value.id});
  return value;
}

Value GraphBuilder::add(const Shape& shape, DType dtype) {
  return graph_.values.emplace_back(Value{graph_.values.size(), shape, dtype});
}

Value GraphBuilder::apply(OperationSpec operation, const std::vector<Value>& inputs,
                          std::vector<ParameterId> parameters, std::vector<StateId> states, const Layer* owner) {
  if (inputs.empty()) throw InputError("an operation takes one input or more");
  GraphNode node{.name = owner != nullptr ? name(*owner) : next_name(kind_of(operation)),
                 .operation = std::move(operation),
                 .inputs = {},
                 .parameters = std::move(parameters),
                 .states = std::move(states)};
  const bool is_embedding = std::holds_alternative<EmbeddingSpec>(node.operation);
  const bool reads_whole_numbers =
      is_embedding || std::holds_alternative<std::shared_ptr<const CustomOperation>>(node.operation);
  std::vector<Shape> shapes;
  for (const Value& input : inputs) {
    const bool is_length = std::holds_alternative<AttentionSpec>(node.operation) && !node.inputs.empty();
    if (is_length && input.dtype != DType::int32)
      throw InputError("the operation " + node.name + " takes lengths, int32, not " +
                       std::string(name_of(input.dtype)));
    if (input.dtype != DType::float32 && !reads_whole_numbers && !is_length)
      throw InputError("the operation " + node.name + " takes float32, not " + std::string(name_of(input.dtype)) +
                       "; an operation of your own may read whole numbers");
    if (input.dtype != DType::int32 && is_embedding)
      throw InputError("the operation " + node.name + " takes tokens, int32, not " + std::string(name_of(input.dtype)));
    if (input.shape.rank() == 0)
      throw InputError("the operation " + node.name + " is given the field 'input', which the data does not have");
    if (input.id >= graph_.values.size() || graph_.values[input.id] != input)
      throw LogicError("the operation " + node.name + " is given a value of another graph");
    node.inputs.push_back(input.id);
    shapes.push_back(input.shape);
  }
  const Value output = add(output_shape(node.operation, shapes), DType::float32);
  node.output = output.id;
  graph_.nodes.push_back(std::move(node));
  return output;
}

std::string GraphBuilder::next_name(std::string_view kind) {
  const auto [entry, added] = counters_.try_emplace(std::string(kind), 0);
  return entry->first + std::to_string(++entry->second);
}

const std::string& GraphBuilder::name(const Layer& layer) {
  const auto known = names_.find(layer.identity());
  if (known != names_.end()) return known->second;
  return names_.emplace(layer.identity(), next_name(layer.kind())).first->second;
}

ParameterId GraphBuilder::parameter(const Layer& owner, std::string_view suffix, const Shape& shape,
                                    const ParameterOptions& options) {
  const std::string full = name_in_files(name(owner), suffix);
  const auto known = std::ranges::find(graph_.parameters, full, &GraphParameter::name);
  const auto id = ParameterId{static_cast<std::uint32_t>(known - graph_.parameters.begin())};
  if (known == graph_.parameters.end())
    graph_.parameters.push_back(
        {full, shape, options.fan_in, options.fan_out, options.initializer, options.zero_row, options.sparse});
  else if (known->shape != shape)
    throw InputError("the layer " + name(owner) + " is used twice, and its parameter " + full + " would be " +
                     known->shape.text() + " and " + shape.text());
  return id;
}

StateId GraphBuilder::state(const Layer& owner, std::string_view suffix, const Shape& shape, DType dtype, float initial,
                            Scope scope) {
  const std::string full = name_in_files(name(owner), suffix);
  if (dtype != DType::float32 && dtype != DType::int64)
    throw LogicError("the state " + full + " would be " + std::string(name_of(dtype)) +
                     "; a layer's state is float32, or int64 for a counter");
  const auto known = std::ranges::find(graph_.states, full, &GraphState::name);
  const auto id = StateId{static_cast<std::uint32_t>(known - graph_.states.begin())};
  if (known == graph_.states.end())
    graph_.states.push_back({full, shape, dtype, initial, scope});
  else if (known->shape != shape || known->dtype != dtype)
    throw InputError("the layer " + name(owner) + " is used twice, and its state " + full + " would be " +
                     known->shape.text() + " and " + shape.text());
  return id;
}

Graph GraphBuilder::finish(const Value& output) {
  graph_.output = output.id;
  drop_dead_nodes(graph_);
  require_parameters_are_read(graph_);
  names_.clear();
  counters_.clear();
  return std::exchange(graph_, {});
}

Graph build_graph(const Layer& model, std::span<const Field> fields, std::size_t rows) {
  GraphBuilder builder(fields, rows);
  if (std::ranges::find(fields, "input", &Field::name) != fields.end())
    return builder.finish(model.build(builder.input("input"), builder));
  try {
    return builder.finish(model.build(Value{}, builder));
  } catch (const InputError&) {
    if (builder.has_inputs()) throw;
    throw InputError("the data has no field 'input', and the model asks for no other");
  }
}

Graph build_graph(const Layer& model, const Shape& input) {
  const Field field{"input", input.without_batch(), DType::float32};
  return build_graph(model, {&field, 1}, static_cast<std::size_t>(input[0]));
}

}  // namespace ronda
