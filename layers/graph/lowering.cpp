#include <ronda/core/error.hpp>
#include <ronda/layers/activation_layouts.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/layers/elementwise.hpp>
#include <ronda/layers/graph/lowering.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/split_operations.hpp>
#include <ronda/layers/widened.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace ronda::graph {
namespace {

bool take_relu(Activation& activation, const OperationSpec& next) {
  const auto* function = std::get_if<ElementwiseSpec>(&next);
  if (function == nullptr || function->function != ElementwiseFunction::relu || activation != Activation::none)
    return false;
  activation = Activation::relu;
  return true;
}

bool take_pooling(ConvolutionSpec& convolution, const OperationSpec& next) {
  const auto* pool = std::get_if<PoolSpec>(&next);
  if (pool == nullptr) return false;
  convolution.pool = *pool;
  return true;
}

/// Whether `operation` does `next`'s work too from now on. What is summed over ranks is whole only behind the sum.
bool absorb(OperationSpec& operation, const OperationSpec& next) {
  return std::visit(
      Overloaded{[&](DenseSpec& spec) { return spec.sums != SumOverRanks::output && take_relu(spec.activation, next); },
                 [&](BatchNormSpec& spec) { return take_relu(spec.activation, next); },
                 [&](AddSpec& spec) { return take_relu(spec.activation, next); },
                 [&](ConvolutionSpec& spec) {
                   return spec.sums != SumOverRanks::output && !spec.pool &&
                          (take_pooling(spec, next) || take_relu(spec.activation, next));
                 },
                 [](auto&) { return false; }},
      operation);
}

}  // namespace

void fuse(Graph& graph) {
  std::vector<std::size_t> readers;
  for (const Value& value : graph.values) readers.push_back(graph.readers(value.id));
  std::vector<GraphNode> remaining;
  for (GraphNode& node : graph.nodes) {
    const auto giver = std::ranges::find(remaining, node.inputs.front(), &GraphNode::output);
    if (giver != remaining.end() && node.inputs.size() == 1 && readers[giver->output] == 1 &&
        absorb(giver->operation, node.operation))
      giver->output = node.output;
    else
      remaining.push_back(std::move(node));
  }
  graph.nodes = std::move(remaining);
}

namespace {

TensorDesc plain(const TensorDesc& desc) { return {desc.shape, desc.dtype, {}}; }

bool samples_are_dense(const TensorDesc& image) {
  return image.padded_count() == image.count() && image.layout.without_outermost().has_value();
}

class Lowering {
 public:
  Lowering(const Graph& graph, Primitives& primitives, Picker& picker, const ProgramOptions& options)
      : graph_(graph),
        primitives_(primitives),
        picker_(picker),
        options_(options),
        uses_(graph.parameters.size()),
        has_layout_(graph.parameters.size()) {
    for (const GraphParameter& parameter : graph.parameters)
      result_.parameters.push_back({.name = parameter.name,
                                    .desc = {},
                                    .fan_in = parameter.fan_in,
                                    .fan_out = parameter.fan_out,
                                    .initializer = parameter.initializer,
                                    .zero_row = parameter.zero_row,
                                    .sparse = parameter.sparse && trains()});
    for (const GraphNode& node : graph.nodes)
      for (const ParameterId id : node.parameters) {
        ++uses_[index_of(id)];
        if (!std::holds_alternative<EmbeddingSpec>(node.operation)) result_.parameters[index_of(id)].sparse = false;
      }
  }

  Lowered run() {
    if (trains()) require_normalisable(graph_);
    value_of_.resize(graph_.values.size());
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) add_input(i);
    for (const GraphNode& node : graph_.nodes) value_of_[node.output] = lower(node);
    const std::size_t output = to_plain(in_file_order(value_of_[graph_.output]));
    result_.output = graph_.passed.empty() ? output : copy_of_input(output);
    for (const std::size_t value : graph_.passed)
      result_.passed.push_back(copy_of_input(to_plain(in_file_order(value_of_[value]))));
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool trains() const { return options_.mode == Mode::training; }

  void add_input(std::size_t i) {
    const Value& input = graph_.values[graph_.inputs[i].value];
    std::size_t value = result_.values.size();
    const bool real = input.dtype == DType::float32;
    result_.values.push_back({.desc = {input.shape, input.dtype, {}},
                              .base = value,
                              .input = i,
                              .gradient = options_.input_gradient && real && trains()});
    if (real && primitives_.dtype() != DType::float32)
      value = add_step("cast", ReorderSpec{{input.shape, primitives_.dtype(), {}}}, value);
    value_of_[input.id] = value;
  }

  // ---- values -------------------------------------------------------------------------------------------------------

  std::size_t add_view(std::size_t of, const TensorDesc& desc,
                       const std::optional<TensorDesc>& flattened = std::nullopt) {
    const DeviceValue& shown = result_.values[of];
    result_.values.push_back({.desc = desc, .flattened = flattened, .base = shown.base, .gradient = shown.gradient});
    return result_.values.size() - 1;
  }

  /// A reorder or cast of ours, between operations with different layouts. All operations that need the same one share
  /// it.
  std::size_t add_step(const std::string& kind, const ReorderSpec& spec, std::size_t input) {
    const auto known = std::ranges::find_if(
        reordered_, [&](const Reordered& r) { return r.input == input && result_.values[r.output].desc == spec.to; });
    if (known != reordered_.end()) return known->output;
    const GraphNode node{.name = kind + std::to_string(++counters_[kind]), .operation = spec, .inputs = {}};
    const std::size_t output = make(node, {input});
    reordered_.push_back({input, output});
    return output;
  }

  std::size_t to_plain(std::size_t value) {
    const TensorDesc desc = result_.values[value].desc;
    if (desc == plain(desc)) return value;
    if (same_bytes(desc, plain(desc))) return add_view(value, plain(desc), result_.values[value].flattened);
    return add_reorder("to_plain", value, plain(desc));
  }

  /// A copy where it is the caller's memory, else itself.
  std::size_t copy_of_input(std::size_t value) {
    const TensorDesc desc = result_.values[value].desc;
    return result_.values[result_.values[value].base].input ? add_reorder("passed", value, desc) : value;
  }

  /// A sequence as an image of one row, and an image itself.
  std::size_t as_image(std::size_t value) {
    const TensorDesc desc = result_.values[value].desc;
    if (!is_sequence(desc.shape)) return value;
    const auto known = image_of_.find(value);
    if (known != image_of_.end()) return known->second;
    return image_of_[value] = add_view(value, image_of(desc));
  }
  std::size_t as_sequence(std::size_t image) {
    const std::size_t sequence = add_view(image, sequence_of(result_.values[image].desc));
    image_of_[sequence] = image;
    return sequence;
  }

  /// In another layout. Of sequences backends know the layouts of their images.
  std::size_t add_reorder(const std::string& kind, std::size_t value, const TensorDesc& to) {
    if (!is_sequence(to.shape)) return add_step(kind, ReorderSpec{to}, value);
    return as_sequence(add_step(kind, ReorderSpec{image_of(to)}, as_image(value)));
  }

  /// Features behind a flatten in the order of files.
  std::size_t in_file_order(std::size_t value) {
    const auto sample = result_.values[value].flattened;
    if (!sample) return value;
    const TensorDesc features = result_.values[value].desc;
    std::vector<std::int64_t> extents{features.shape[0]};
    extents.insert(extents.end(), sample->shape.begin(), sample->shape.end());
    const TensorDesc image{Shape(extents), features.dtype, sample->layout.with_outermost()};
    const auto known = image_of_.find(value);
    const std::size_t shown = known != image_of_.end() ? known->second : add_view(value, image);
    image_of_[value] = shown;
    return add_view(add_reorder("feature_reorder", shown, logical_order_of(image)), features);
  }

  // ---- nodes --------------------------------------------------------------------------------------------------------

  std::size_t lower(const GraphNode& node) {
    std::vector<std::size_t> inputs;
    for (const std::size_t value : node.inputs) inputs.push_back(value_of_[value]);
    return std::visit(Overloaded{[&](const FlattenSpec&) { return flatten(inputs.front()); },
                                 [&](const ConvolutionSpec& spec) {
                                   return make_of_images(node, spec.int8 ? to_plain(inputs.front()) : inputs.front());
                                 },
                                 [&](const PoolSpec&) { return make_of_images(node, inputs.front()); },
                                 [&](const DenseSpec&) {
                                   if (shares_parameters(node)) inputs.front() = in_file_order(inputs.front());
                                   return make_by_rows(node, inputs.front());
                                 },
                                 [&](const ElementwiseSpec& spec) {
                                   const TensorDesc& given = result_.values[inputs.front()].desc;
                                   const bool padded = given.padded_count() != given.count();
                                   if (padded && !elementwise::keeps_zero(spec.function))
                                     inputs.front() = to_plain(inputs.front());
                                   return like_input(inputs.front(), make(node, inputs));
                                 },
                                 [&](const BatchNormSpec&) {
                                   inputs.front() = in_file_order(inputs.front());
                                   return make(node, inputs);
                                 },
                                 [&](const DropoutSpec&) {
                                   if (!trains()) return inputs.front();
                                   inputs.front() = in_file_order(inputs.front());
                                   return make(node, inputs);
                                 },
                                 [&](const AddSpec&) { return make_alike(node, std::move(inputs)); },
                                 [&](const ConcatSpec&) { return make(node, all_plain(std::move(inputs))); },
                                 [&](const LayerNormSpec&) { return make(node, all_plain(std::move(inputs))); },
                                 [&](const PositionSpec&) { return make(node, all_plain(std::move(inputs))); },
                                 [&](const AttentionSpec&) { return make(node, all_plain(std::move(inputs))); },
                                 [&](const PartSpec&) { return make(node, all_plain(std::move(inputs))); },
                                 [&](const std::shared_ptr<const CustomOperation>&) {
                                   return make(node, all_plain(std::move(inputs)));
                                 },
                                 [&](const auto&) { return make(node, inputs); }},
                      node.operation);
  }

  [[nodiscard]] bool shares_parameters(const GraphNode& node) const {
    return std::ranges::any_of(node.parameters, [this](ParameterId id) { return uses_[index_of(id)] > 1; });
  }

  std::vector<std::size_t> all_plain(std::vector<std::size_t> inputs) {
    for (std::size_t& input : inputs) input = to_plain(in_file_order(input));
    return inputs;
  }

  /// A dense operation on (N, T, features) is one on a matrix of N · T rows, which are the same bytes.
  std::size_t make_by_rows(const GraphNode& node, std::size_t input) {
    const Shape shape = result_.values[input].desc.shape;
    if (shape.rank() != 3) return make(node, {input});
    const std::size_t given = to_plain(input);
    const DType dtype = result_.values[given].desc.dtype;
    const std::size_t output = make(node, {add_view(given, {{shape[0] * shape[1], shape[2]}, dtype, {}})});
    const std::int64_t outputs = result_.values[output].desc.shape[1];
    return add_view(output, {{shape[0], shape[1], outputs}, dtype, {}});
  }

  /// Windows over sequences are windows over images of one row.
  std::size_t make_of_images(const GraphNode& node, std::size_t input) {
    const std::size_t output = make(node, {as_image(input)});
    return is_sequence(result_.values[input].desc.shape) ? as_sequence(output) : output;
  }

  /// Features keep their order in a function of each element.
  std::size_t like_input(std::size_t input, std::size_t output) {
    result_.values[output].flattened = result_.values[input].flattened;
    return output;
  }

  /// All inputs get one layout: that of the first input which is not plain.
  std::size_t make_alike(const GraphNode& node, std::vector<std::size_t> inputs) {
    const auto flattened = [this](std::size_t value) { return result_.values[value].flattened; };
    const bool one_order =
        std::ranges::all_of(inputs, [&](std::size_t i) { return flattened(i) == flattened(inputs.front()); });
    if (!one_order)
      for (std::size_t& input : inputs) input = in_file_order(input);
    const auto chosen = std::ranges::find_if(
        inputs, [this](std::size_t i) { return result_.values[i].desc != plain(result_.values[i].desc); });
    if (chosen != inputs.end()) {
      const TensorDesc wanted = result_.values[*chosen].desc;
      for (std::size_t& input : inputs)
        if (result_.values[input].desc != wanted) input = add_reorder("reorder", input, wanted);
    }
    return like_input(inputs.front(), make(node, inputs));
  }

  /// Moves no byte if the samples lie densely one after another.
  std::size_t flatten(std::size_t input) {
    const TensorDesc given = result_.values[input].desc;
    const int rank = given.shape.rank();
    if (rank == 2) return input;
    const bool has_order = rank == 4 || is_sequence(given.shape);
    const std::size_t dense = has_order && samples_are_dense(given) ? input : to_plain(input);
    const TensorDesc& desc = result_.values[dense].desc;
    const TensorDesc features{{given.shape[0], given.shape.without_batch().count()}, given.dtype, {}};
    if (in_logical_order(desc)) return add_view(dense, features);
    const TensorDesc sample{given.shape.without_batch(), given.dtype, desc.layout.without_outermost().value()};
    return add_view(dense, features, sample);
  }

  // ---- operations ---------------------------------------------------------------------------------------------------

  std::size_t make(const GraphNode& node, const std::vector<std::size_t>& inputs) {
    std::vector<TensorDesc> descs;
    bool gradient = false;
    for (const std::size_t input : inputs) {
      descs.push_back(result_.values[input].desc);
      gradient = gradient || result_.values[input].gradient;
    }
    Step step{.name = node.name,
              .spec = node.operation,
              .inputs = inputs,
              .parameters = node.parameters,
              .states = node.states,
              .operation = make_operation(node, descs,
                                          {picker_, options_.mode, trains() && gradient, shares_parameters(node),
                                           node.name, options_.in_halves && trains() && !shares_parameters(node)})};
    fix_layouts(step);
    if ((step.operation->plan().rank_sums > 0 || !step.operation->plan().parts.empty()) &&
        result_.first_cpu_only_operation.empty())
      result_.first_cpu_only_operation = node.name;
    const OperationPlan& plan = step.operation->plan();
    result_.lines.push_back(node.name + ": " + descs.front().shape.text() + " -> " + plan.output.text() + "; " +
                            plan.picks);
    step.output = result_.values.size();
    result_.values.push_back(
        {.desc = plan.output, .base = step.output, .gradient = trains() && (gradient || !step.parameters.empty())});
    result_.steps.push_back(std::move(step));
    return result_.values.size() - 1;
  }

  std::unique_ptr<Operation> make_operation(const GraphNode& node, std::span<const TensorDesc> inputs,
                                            const OperationContext& context) {
    if (const auto* custom = std::get_if<std::shared_ptr<const CustomOperation>>(&node.operation)) {
      std::vector<TensorDesc> parameters;
      for (const ParameterId id : node.parameters)
        parameters.push_back({graph_.parameters[index_of(id)].shape, DType::float32, {}});
      if (result_.first_cpu_only_operation.empty()) result_.first_cpu_only_operation = node.name;
      return in_layer_type(make_custom(*custom, widened_of(inputs), parameters, options_.mode), inputs);
    }
    if (const auto* part = std::get_if<PartSpec>(&node.operation)) return make_part(*part, inputs.front());
    if (auto made = primitives_.make(node.operation, inputs, context))
      return summed_over_ranks(std::move(made), sums_of(node.operation), inputs.front(), context.input_gradient);
    if (primitives_.on_processor())
      if (auto made = make_reference_primitives()->make(node.operation, widened_of(inputs), context))
        return in_layer_type(std::move(made), inputs);
    throw InputError(primitives_.name() + " has no operation for " + node.name + " (" + kind_of(node.operation) +
                     "); compute on the processor: " + setting("device", "cpu"));
  }

  static std::vector<TensorDesc> widened_of(std::span<const TensorDesc> inputs) {
    std::vector<TensorDesc> wide;
    std::ranges::transform(inputs, std::back_inserter(wide), [](const TensorDesc& input) { return widened(input); });
    return wide;
  }
  /// Of an operation that computes in float32, for inputs that are widened.
  std::unique_ptr<Operation> in_layer_type(std::unique_ptr<Operation> exact, std::span<const TensorDesc> inputs) const {
    if (primitives_.dtype() == DType::float32 || !primitives_.on_processor()) return exact;
    return widened(std::move(exact), inputs, primitives_.dtype());
  }

  /// A parameter has the layout that its first reader wants. All readers of a shared parameter want the same one.
  void fix_layouts(const Step& step) {
    std::vector<TensorDesc> wanted = step.operation->plan().parameters;
    const bool is_convolution = std::holds_alternative<ConvolutionSpec>(step.spec);
    if (wanted.size() != step.parameters.size())
      throw InputError("the operation " + step.name + " takes " + std::to_string(wanted.size()) + " parameters, not " +
                       std::to_string(step.parameters.size()));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::size_t id = index_of(step.parameters[i]);
      if (is_convolution && wanted[i].shape.rank() == 4 && graph_.parameters[id].shape.rank() == 3)
        wanted[i] = weight_of_sequences(wanted[i]);
      ParameterRequest& request = result_.parameters[id];
      if (graph_.parameters[id].shape != wanted[i].shape)
        throw InputError("the parameter " + request.name + " of " + step.name + " is " + wanted[i].shape.text() +
                         ", not " + graph_.parameters[id].shape.text());
      if (!has_layout_[id]) {
        has_layout_[id] = true;
        request.desc = wanted[i];
        if (i == 0) request.flattened = result_.values[step.inputs.front()].flattened;
      } else if (request.desc != wanted[i]) {
        throw LogicError("the parameter " + request.name + " is read twice, as " + request.desc.text() + " and as " +
                         wanted[i].text() + "; " + primitives_.name() + " is to give both one layout");
      }
    }
  }

  struct Reordered {
    std::size_t input, output;
  };
  const Graph& graph_;
  Primitives& primitives_;
  Picker& picker_;
  const ProgramOptions& options_;
  std::vector<std::size_t> uses_;      ///< of each parameter
  std::vector<bool> has_layout_;       ///< of each parameter
  std::vector<std::size_t> value_of_;  ///< of each value of the graph: its number in result_
  std::vector<Reordered> reordered_;
  std::map<std::size_t, std::size_t> image_of_;  ///< by features and sequences: the image that they are the bytes of
  std::map<std::string, int> counters_;
  Lowered result_;
};

}  // namespace

Lowered lower(const Graph& graph, Primitives& primitives, Picker& picker, const ProgramOptions& options) {
  return Lowering(graph, primitives, picker, options).run();
}

}  // namespace ronda::graph
