#include <ronda/layers/graph/fusion.hpp>
#include <ronda/layers/primitives.hpp>

#include <algorithm>

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

}  // namespace ronda::graph
