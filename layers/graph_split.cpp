#include <ronda/core/error.hpp>
#include <ronda/core/names.hpp>
#include <ronda/core/text.hpp>
#include <ronda/layers/graph_split.hpp>
#include <ronda/layers/primitives.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace ronda {
namespace {

constexpr EnumNames<SplitBy, 3> split_names{
    {{SplitBy::columns, "columns"}, {SplitBy::rows, "rows"}, {SplitBy::heads, "heads"}}};

using Widths = std::vector<std::int64_t>;  ///< of the parts, along a value's last axis

Widths even(std::int64_t count, std::size_t parts) {
  Widths widths;
  for (std::size_t part = 0; part < parts; ++part)
    widths.push_back(static_cast<std::int64_t>(part_of(static_cast<std::size_t>(count), part, parts).size()));
  return widths;
}

Widths scaled(Widths widths, std::int64_t factor) {
  for (std::int64_t& width : widths) width *= factor;
  return widths;
}

std::vector<Range> as_ranges(const Widths& widths) {
  std::vector<Range> all;
  std::size_t begin = 0;
  for (const std::int64_t width : widths) {
    all.push_back({begin, begin + static_cast<std::size_t>(width)});
    begin = all.back().end;
  }
  return all;
}

std::int64_t features_of(const Shape& shape) { return shape[shape.rank() - 1]; }

const std::int64_t* outputs_of(const OperationSpec& operation) {
  if (const auto* dense = std::get_if<DenseSpec>(&operation)) return &dense->outputs;
  if (const auto* convolution = std::get_if<ConvolutionSpec>(&operation)) return &convolution->outputs;
  return nullptr;
}

void set_part(OperationSpec& operation, std::int64_t outputs, bool bias, SumOverRanks sums) {
  const auto set = [&](auto& spec) {
    spec.outputs = outputs;
    spec.bias = bias;
    spec.sums = sums;
  };
  if (auto* dense = std::get_if<DenseSpec>(&operation)) set(*dense);
  if (auto* convolution = std::get_if<ConvolutionSpec>(&operation)) set(*convolution);
}

bool is_attention(const GraphNode& node) { return std::holds_alternative<AttentionSpec>(node.operation); }

/// What of each value and each node the parts have.
struct Decisions {
  enum class Kind : std::uint8_t { whole, columns, rows, heads, follows };
  struct OfNode {
    Kind kind = Kind::whole;
    Widths widths = {};      ///< of the outputs by columns, of the inputs by rows
    std::int64_t outer = 1;  ///< of the outputs: 3 for queries, keys and values
  };
  std::vector<OfNode> nodes;
  std::map<std::size_t, Widths> values;  ///< by value: of those of which each rank has a part
  std::vector<std::optional<ParameterSlices>> slices;
};

class Decider {
 public:
  Decider(const Graph& graph, std::span<const SplitChoice> choices, std::size_t parts)
      : graph_(graph), choices_(choices), parts_(parts) {
    result_.nodes.resize(graph.nodes.size());
    result_.slices.resize(graph.parameters.size());
  }

  Decisions run() {
    for (const SplitChoice& choice : choices_) check(choice);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) decide(i);
    return std::move(result_);
  }

 private:
  [[noreturn]] static void refuse(const std::string& name, const std::string& why) {
    throw InputError("'" + name + "' cannot be split over ranks: " + why);
  }

  void check(const SplitChoice& choice) const {
    if (std::ranges::count(choices_, choice.name, &SplitChoice::name) > 1) refuse(choice.name, "it is named twice");
    const auto node = std::ranges::find(graph_.nodes, choice.name, &GraphNode::name);
    const auto names = splittable(graph_);
    if (node == graph_.nodes.end() || std::ranges::find(names, choice.name) == names.end())
      refuse(choice.name, std::string(node == graph_.nodes.end() ? "the model has no such operation"
                                                                 : "it is no dense layer, convolution or attention") +
                              "; " +
                              (names.empty() ? std::string("this model has none that can be")
                                             : listed(
                                                   names, [](const std::string& name) { return name; }, " or ") +
                                                   " can"));
    const bool attends = std::ranges::any_of(
        graph_.nodes, [&](const GraphNode& each) { return each.name == choice.name && is_attention(each); });
    if (attends != (choice.by == SplitBy::heads))
      refuse(choice.name, attends ? "an attention is split by heads" : "heads are an attention's");
  }

  void decide(std::size_t i) {
    const GraphNode& node = graph_.nodes[i];
    const auto choice = std::ranges::find(choices_, node.name, &SplitChoice::name);
    if (choice == choices_.end()) return follow(i);
    for (const ParameterId id : node.parameters) require_own(node, id);
    if (choice->by == SplitBy::heads) return by_heads(i);
    if (choice->by == SplitBy::columns) return by_columns(i, even(*outputs_of(node.operation), parts_), 1);
    by_rows(i);
  }

  /// What treats features one by one has as much of them as it is given.
  void follow(std::size_t i) {
    const GraphNode& node = graph_.nodes[i];
    const auto given = result_.values.find(node.inputs.front());
    if (given == result_.values.end()) return;
    const Shape& shape = graph_.values[node.inputs.front()].shape;
    std::optional<Widths> widths;
    if (std::holds_alternative<ElementwiseSpec>(node.operation) || std::holds_alternative<PoolSpec>(node.operation))
      widths = given->second;
    if (std::holds_alternative<FlattenSpec>(node.operation) && shape.rank() == 4)  // (C, H, W) order
      widths = scaled(given->second, shape[1] * shape[2]);
    if (std::holds_alternative<FlattenSpec>(node.operation) && shape.rank() == 2) widths = given->second;
    if (!widths) return;
    result_.nodes[i].kind = Decisions::Kind::follows;
    result_.values[node.output] = *widths;
  }

  void by_columns(std::size_t i, const Widths& widths, std::int64_t outer) {
    const GraphNode& node = graph_.nodes[i];
    require_some(node, widths, "output");
    require_no_groups(node);
    result_.nodes[i] = {Decisions::Kind::columns, widths, outer};
    result_.values[node.output] = scaled(widths, outer);
    for (const ParameterId id : node.parameters) {
      const Shape& shape = graph_.parameters[index_of(id)].shape;
      result_.slices[index_of(id)] = {0, outer, shape[0] / outer, shape.count() / shape[0], as_ranges(widths)};
    }
  }

  /// The bias is the first part's: it is in the sum once.
  void by_rows(std::size_t i) {
    const GraphNode& node = graph_.nodes[i];
    require_no_groups(node);
    const auto given = result_.values.find(node.inputs.front());
    const std::int64_t inputs = features_of(graph_.values[node.inputs.front()].shape);
    const Widths widths = given != result_.values.end() ? given->second : even(inputs, parts_);
    require_some(node, widths, "input");
    result_.nodes[i] = {Decisions::Kind::rows, widths};
    const Shape& weight = graph_.parameters[index_of(node.parameters[0])].shape;
    result_.slices[index_of(node.parameters[0])] = {1, weight[0], weight[1], weight.count() / weight[0] / weight[1],
                                                    as_ranges(widths)};
    if (node.parameters.size() < 2) return;
    Widths bias(parts_, 0);
    bias[0] = weight[0];
    result_.slices[index_of(node.parameters[1])] = {0, 1, weight[0], 1, as_ranges(bias)};
  }

  void by_heads(std::size_t i) {
    const GraphNode& node = graph_.nodes[i];
    if (const auto* attention = std::get_if<AttentionSpec>(&node.operation)) {
      if (attention->dropout > 0) refuse(node.name, "what its dropout draws would be alike in all parts");
      result_.nodes[i] = {Decisions::Kind::heads, even(attention->heads, parts_)};
      const std::int64_t width = features_of(graph_.values[node.output].shape) / attention->heads;
      result_.values[node.output] = scaled(result_.nodes[i].widths, width);
      return;
    }
    const auto reader = std::ranges::find_if(
        graph_.nodes, [&](const GraphNode& each) { return is_attention(each) && each.inputs.front() == node.output; });
    if (reader == graph_.nodes.end()) return by_rows(i);
    const std::int64_t heads = std::get<AttentionSpec>(reader->operation).heads;
    if (heads < static_cast<std::int64_t>(parts_))
      refuse(node.name, "it has " + counted(heads, "head") + ", for " + counted(to_signed(parts_), "rank"));
    by_columns(i, scaled(even(heads, parts_), *outputs_of(node.operation) / (3 * heads)), 3);
  }

  [[nodiscard]] static std::int64_t to_signed(std::size_t count) { return static_cast<std::int64_t>(count); }

  void require_some(const GraphNode& node, const Widths& widths, const std::string& noun) const {
    std::int64_t all = 0;
    for (const std::int64_t width : widths) all += width;
    if (std::ranges::find(widths, 0) != widths.end())
      refuse(node.name, "it has " + counted(all, noun) + ", for " + counted(to_signed(parts_), "rank"));
  }

  void require_own(const GraphNode& node, ParameterId id) const {
    std::ptrdiff_t readers = 0;
    for (const GraphNode& each : graph_.nodes) readers += std::ranges::count(each.parameters, id);
    if (readers > 1) refuse(node.name, "another operation reads " + graph_.parameters[index_of(id)].name + " too");
  }

  static void require_no_groups(const GraphNode& node) {
    const auto* convolution = std::get_if<ConvolutionSpec>(&node.operation);
    if (convolution != nullptr && convolution->groups != 1) refuse(node.name, "it is a convolution of groups");
  }

  const Graph& graph_;
  std::span<const SplitChoice> choices_;
  std::size_t parts_;
  Decisions result_;
};

/// Writes one part's graph down.
class PartBuilder {
 public:
  PartBuilder(const Graph& whole, const Decisions& decisions, std::size_t part)
      : whole_(whole), decisions_(decisions), part_(part) {}

  Graph run() {
    for (std::size_t id = 0; id < whole_.parameters.size(); ++id) add_parameter(id);
    graph_.states = whole_.states;
    for (const GraphInput& input : whole_.inputs) {
      const Value& value = whole_.values[input.value];
      whole_of_[input.value] = add_value(value.shape, value.dtype);
      graph_.inputs.push_back({input.field, whole_of_[input.value]});
    }
    for (std::size_t i = 0; i < whole_.nodes.size(); ++i) take(whole_.nodes[i], decisions_.nodes[i]);
    graph_.output = in_whole(whole_.output);
    return std::move(graph_);
  }

 private:
  using Kind = Decisions::Kind;

  std::size_t add_value(const Shape& shape, DType dtype = DType::float32) {
    graph_.values.push_back({graph_.values.size(), shape, dtype});
    return graph_.values.size() - 1;
  }
  /// A value of the whole as this part has it.
  std::size_t add_part_value(std::size_t value) {
    Shape shape = whole_.values[value].shape;
    shape[shape.rank() - 1] = decisions_.values.at(value)[part_];
    return add_value(shape);
  }

  void add_parameter(std::size_t id) {
    GraphParameter parameter = whole_.parameters[id];
    const auto& slices = decisions_.slices[id];
    if (slices && slices->count(part_) == 0) return;
    if (slices) {
      const auto own = static_cast<std::int64_t>(slices->parts[part_].size());
      parameter.shape[slices->axis] = slices->axis == 0 ? slices->outer * own : own;
    }
    parameter_of_[id] = ParameterId{static_cast<std::uint32_t>(graph_.parameters.size())};
    graph_.parameters.push_back(std::move(parameter));
  }

  std::size_t in_whole(std::size_t value) {
    if (const auto known = whole_of_.find(value); known != whole_of_.end()) return known->second;
    return whole_of_[value] = add_part_node("gather_", value, true, part_of_.at(value), decisions_.values.at(value),
                                            add_value(whole_.values[value].shape));
  }
  std::size_t in_parts(std::size_t value, const Widths& widths) {
    if (const auto known = part_of_.find(value); known != part_of_.end()) return known->second;
    Shape shape = whole_.values[value].shape;
    shape[shape.rank() - 1] = widths[part_];
    return part_of_[value] = add_part_node("take_", value, false, in_whole(value), widths, add_value(shape));
  }
  std::size_t add_part_node(const char* what, std::size_t value, bool gathers, std::size_t from, const Widths& widths,
                            std::size_t output) {
    const auto giver = std::ranges::find(whole_.nodes, value, &GraphNode::output);
    graph_.nodes.push_back({.name = what + (giver != whole_.nodes.end() ? giver->name : std::string("input")),
                            .operation = PartSpec{gathers, widths, part_},
                            .inputs = {from},
                            .parameters = {},
                            .states = {},
                            .output = output});
    return output;
  }

  void take(const GraphNode& node, const Decisions::OfNode& decision) {
    GraphNode copy = node;
    for (std::size_t i = 0; i < copy.inputs.size(); ++i) {
      const bool in_part =
          i == 0 && (decision.kind == Kind::rows || decision.kind == Kind::heads || decision.kind == Kind::follows);
      copy.inputs[i] = in_part ? in_parts(copy.inputs[i], decision.widths) : in_whole(copy.inputs[i]);
    }
    if (decision.kind == Kind::columns)
      set_part(copy.operation, decision.widths[part_] * decision.outer, node.parameters.size() > 1,
               SumOverRanks::input_gradient);
    if (decision.kind == Kind::rows)
      set_part(copy.operation, *outputs_of(node.operation), node.parameters.size() > 1 && part_ == 0,
               SumOverRanks::output);
    if (decision.kind == Kind::heads) std::get<AttentionSpec>(copy.operation).heads = decision.widths[part_];
    copy.parameters.clear();
    for (const ParameterId id : node.parameters)
      if (const auto own = parameter_of_.find(index_of(id)); own != parameter_of_.end())
        copy.parameters.push_back(own->second);
    if (decisions_.values.contains(node.output))
      copy.output = part_of_[node.output] = add_part_value(node.output);
    else
      copy.output = whole_of_[node.output] = add_value(whole_.values[node.output].shape);
    graph_.nodes.push_back(std::move(copy));
  }

  const Graph& whole_;
  const Decisions& decisions_;
  std::size_t part_;
  Graph graph_;
  std::map<std::size_t, std::size_t> whole_of_, part_of_;  ///< values of the whole: of this part's graph
  std::map<std::size_t, ParameterId> parameter_of_;
};

}  // namespace

std::string_view name_of(SplitBy by) noexcept { return find_name(split_names, by); }

SplitChoice parse_split_choice(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || sign == 0)
    throw InputError("'" + std::string(text) + "' does not say what is split how: dense1=columns");
  return {std::string(text.substr(0, sign)), parse_name(split_names, text.substr(sign + 1), "a way to split")};
}

std::string text_of(const SplitChoice& choice) { return choice.name + "=" + std::string(name_of(choice.by)); }

std::string text_of(std::span<const SplitChoice> choices) {
  return listed(choices, [](const SplitChoice& choice) { return text_of(choice); });
}

SplitGraph split(const Graph& graph, std::span<const SplitChoice> choices, std::size_t parts) {
  const Decisions decisions = Decider(graph, choices, parts).run();
  SplitGraph result{.parts = {}, .slices = decisions.slices};
  for (std::size_t part = 0; part < parts; ++part) result.parts.push_back(PartBuilder(graph, decisions, part).run());
  return result;
}

std::vector<std::string> splittable(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes)
    if ((outputs_of(node.operation) != nullptr || is_attention(node)) && (names.empty() || names.back() != node.name))
      names.push_back(node.name);
  return names;
}

}  // namespace ronda
