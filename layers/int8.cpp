#include <ronda/core/error.hpp>
#include <ronda/layers/arithmetic.hpp>
#include <ronda/layers/custom_operation.hpp>
#include <ronda/layers/int8.hpp>
#include <ronda/layers/primitives.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace ronda {
namespace {

bool is_product(const OperationSpec& operation) {
  if (const auto* convolution = std::get_if<ConvolutionSpec>(&operation)) return convolution->groups == 1;
  return std::holds_alternative<DenseSpec>(operation);
}

/// Numbers that are added up for one output.
std::int64_t inputs_of(const Shape& weight) { return weight[0] == 0 ? 0 : weight.count() / weight[0]; }

class Products {
 public:
  explicit Products(const Graph& graph) : graph_(graph), readers_(graph.parameters.size()) {
    for (const GraphNode& node : graph.nodes)
      for (const ParameterId id : node.parameters) ++readers_[index_of(id)];
  }
  [[nodiscard]] bool suits(const GraphNode& node) const {
    return is_product(node.operation) && readers_[index_of(node.parameters.front())] == 1 &&
           inputs_of(weight_of(node).shape) <= int8_most_inputs;
  }
  [[nodiscard]] const GraphParameter& weight_of(const GraphNode& node) const {
    return graph_.parameters[index_of(node.parameters.front())];
  }

 private:
  const Graph& graph_;
  std::vector<int> readers_;
};

void compute_in_int8(OperationSpec& operation) {
  std::visit(Overloaded{[](DenseSpec& spec) { spec.int8 = true; }, [](ConvolutionSpec& spec) { spec.int8 = true; },
                        [](auto&) {}},
             operation);
}

/// `dense1.weight` with another end.
std::string beside(const std::string& weight, const char* suffix) {
  return weight.substr(0, weight.rfind('.') + 1) + suffix;
}

/// Gives what it is given, and remembers its range, without rows that only fill up a batch.
class Observer final : public CustomOperation {
 public:
  explicit Observer(InputRange& range) : range_(&range) {}
  [[nodiscard]] std::string_view kind() const noexcept override { return "range"; }
  [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs.front(); }
  void forward(const CustomArguments& arguments, const Pass& pass) const override {
    const auto x = arguments.input();
    std::ranges::copy(x, arguments.output().begin());
    if (x.empty()) return;
    const Shape& shape = arguments.shape();
    const auto features = static_cast<std::size_t>(shape[shape.rank() - 1]);
    range_->sums.resize(features);
    const std::size_t samples = pass.weights == nullptr ? 1 : pass.weights->as<const float>().size();
    const std::size_t of_sample = x.size() / samples;
    for (std::size_t n = 0; n < samples; ++n)
      if (pass.weights == nullptr || pass.weights->as<const float>()[n] != 0)
        add(x.subspan(n * of_sample, of_sample), features);
  }
  void backward(const CustomArguments&, const Pass&) const override {
    throw LogicError("ranges are for models that only compute");
  }

 private:
  void add(std::span<const float> x, std::size_t features) const {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (int8::not_finite(x[i]) != 0) {
        range_->finite = false;
        continue;
      }
      range_->least = std::min(range_->least, x[i]);
      range_->most = std::max(range_->most, x[i]);
      range_->sums[i % features] += x[i];
    }
    range_->count += static_cast<std::int64_t>(x.size() / features);
  }

  InputRange* range_;
};

}  // namespace

std::vector<std::string> int8_weights(const Graph& graph) {
  const Products products(graph);
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes)
    if (products.suits(node)) names.push_back(products.weight_of(node).name);
  return names;
}

Graph with_int8(Graph graph, std::span<const std::string> weights) {
  const std::vector<std::string> possible = int8_weights(graph);
  for (const std::string& weight : weights)
    if (std::ranges::find(possible, weight) == possible.end())
      throw InputError("no operation of the model can compute with " + weight + " in int8");
  for (GraphNode& node : graph.nodes) {
    if (!is_product(node.operation)) continue;
    const GraphParameter weight = graph.parameters[index_of(node.parameters.front())];
    if (std::ranges::find(weights, weight.name) == weights.end()) continue;
    compute_in_int8(node.operation);
    std::vector<ParameterId> more;
    const auto add = [&](const char* suffix, const Shape& shape) {
      more.push_back(ParameterId{static_cast<std::uint32_t>(graph.parameters.size())});
      graph.parameters.push_back({.name = beside(weight.name, suffix), .shape = shape});
    };
    add("weight_scale", {weight.shape[0]});
    add("input_scale", {1});
    add("input_zero", {1});
    node.parameters.insert(node.parameters.begin() + 1, more.begin(), more.end());
  }
  return graph;
}

Graph with_ranges(Graph graph, std::deque<InputRange>& ranges) {
  const Products products(graph);
  std::vector<GraphNode> nodes;
  for (const GraphNode& node : graph.nodes) {
    if (products.suits(node)) {
      InputRange& range = ranges.emplace_back();
      range.weight = products.weight_of(node).name;
      if (node.parameters.size() > 1) range.bias = graph.parameters[index_of(node.parameters[1])].name;
      Value seen = graph.values[node.inputs.front()];
      seen.id = graph.values.size();
      nodes.push_back({.name = node.name + "_input",
                       .operation = std::make_shared<Observer>(range),
                       .inputs = {node.inputs.front()},
                       .output = seen.id});
      graph.values.push_back(seen);
      nodes.push_back(node);
      nodes.back().inputs.front() = graph.values.size() - 1;
    } else {
      nodes.push_back(node);
    }
  }
  graph.nodes = std::move(nodes);
  return graph;
}

Int8Input int8_input(const InputRange& range) {
  const double least = std::min(range.least, 0.0F), most = std::max(range.most, 0.0F);
  const auto scale = static_cast<float>((most - least) / 255);
  if (scale < std::numeric_limits<float>::min()) return {};  // nothing but zeros
  return {scale, static_cast<float>(std::round(-least / scale))};
}

Int8Weight int8_weight(std::span<const float> weight, std::int64_t outputs) {
  Int8Weight result;
  result.values.resize(weight.size());
  const std::size_t row = outputs > 0 ? weight.size() / static_cast<std::size_t>(outputs) : 0;
  for (std::size_t o = 0; o < static_cast<std::size_t>(outputs); ++o) {
    float largest = 0;
    for (std::size_t i = o * row; i < (o + 1) * row; ++i) largest = std::max(largest, std::abs(weight[i]));
    const float scale = largest / 127;
    result.scales.push_back(scale < std::numeric_limits<float>::min() ? 1 : scale);
    for (std::size_t i = o * row; i < (o + 1) * row; ++i)
      result.values[i] =
          static_cast<std::int8_t>(std::clamp(std::round(weight[i] / result.scales.back()), -127.0F, 127.0F));
  }
  return result;
}

std::vector<float> int8_bias_correction(std::span<const float> weight, const Int8Weight& rounded,
                                        const InputRange& range) {
  const std::size_t outputs = rounded.scales.size(), inputs = range.sums.size();
  std::vector<float> correction(outputs);
  if (range.count == 0 || outputs == 0 || inputs == 0) return correction;
  const std::size_t row = weight.size() / outputs, of_input = row / inputs;
  for (std::size_t o = 0; o < outputs; ++o) {
    double sum = 0;
    for (std::size_t i = 0; i < row; ++i) {
      const std::size_t at = o * row + i;
      const double error =
          static_cast<double>(weight[at]) - static_cast<double>(rounded.scales[o]) * rounded.values[at];
      sum += error * range.sums[i / of_input] / static_cast<double>(range.count);
    }
    correction[o] = static_cast<float>(sum);
  }
  return correction;
}

}  // namespace ronda
