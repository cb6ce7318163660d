#include <ronda/core/buffer.hpp>
#include <ronda/core/clock.hpp>
#include <ronda/core/random.hpp>
#include <ronda/data/batch.hpp>
#include <ronda/runtime/strategy/pipeline/node_costs.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace ronda {
namespace {

/// Seconds of each operation of the program, forward and backward, on random samples.
std::vector<OperationCosts> operation_costs(HostProgram& whole, const StageRequest& request) {
  Program& program = whole.program();
  Batch samples(request.fields, request.rows);
  samples.set_real(request.rows);
  std::vector<Tensor> inputs;
  for (const GraphInput& input : program.inputs()) {
    inputs.push_back(samples.field(input.field));
    draw_uniform(inputs.back(), request.seed, input.field);
  }
  for (const Parameter& parameter : whole.parameters()) draw_uniform(parameter.value, request.seed, parameter.name);
  draw_uniform(program.output_gradient(), request.seed, "gradient");
  StepControl sums;
  const Pass pass{.stream = request.stream,
                  .key = RngKey(request.seed, Purpose::layer, std::uint64_t{1}),
                  .weights = &samples.weights(),
                  .control = &sums,
                  .on_ready = {}};
  return program.measure(inputs, pass);
}

/// By node; what lowering added, as a reorder, counts for the operation behind it.
std::vector<double> by_node(const Graph& graph, std::span<const OperationCosts> costs) {
  std::vector<double> seconds(graph.nodes.size());
  double before = 0;
  std::size_t last = 0;
  for (const OperationCosts& cost : costs) {
    before += cost.forward + cost.backward;
    const auto node = std::ranges::find(graph.nodes, cost.name, &GraphNode::name);
    if (node == graph.nodes.end()) continue;
    last = static_cast<std::size_t>(node - graph.nodes.begin());
    seconds[last] += std::exchange(before, 0.0);
  }
  seconds[last] += before;
  return seconds;
}

/// Seconds to read or write a byte of memory that no cache has: of sums of numbers, as gradients' are, one thread's.
double seconds_of_byte() {
  constexpr std::size_t count = std::size_t{4} << 20;
  const Buffer memory = Buffer::host(2 * count * sizeof(float));
  auto* const sums = reinterpret_cast<float*>(memory.data());
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const double begin = steady_seconds();
    std::transform(sums, sums + count, sums + count, sums, std::plus());
    const double seconds = steady_seconds() - begin;
    if (round < 2 || seconds < best) best = seconds;  // the first does not count
  }
  return best / static_cast<double>(3 * count * sizeof(float));
}

/// Bytes that are read and written for a number of a parameter in a micro-batch, on the mean: to add its gradient to a
/// sum, and to update it and the optimizer's states.
double bytes_of_parameter(const StageRequest& request) {
  const double sums = request.micro_batches > 1 ? 3 : 0;
  const double update = 1 + 2 * (1 + static_cast<double>(request.optimizer_states));
  return sizeof(float) * (sums + update / static_cast<double>(request.micro_batches));
}

}  // namespace

std::vector<CutPlace> NodeCosts::with_costs(const Graph& graph, const std::vector<std::size_t>& places) const {
  std::vector<CutPlace> all;
  for (const std::size_t place : places)
    all.push_back({place, crossing_byte * static_cast<double>(crossing_bytes(graph, place))});
  return all;
}

NodeCosts measured_costs(HostProgram& whole, const Graph& graph, const StageRequest& request) {
  NodeCosts costs{.nodes = by_node(graph, operation_costs(whole, request))};
  const double of_byte = seconds_of_byte(), of_number = of_byte * bytes_of_parameter(request);
  std::set<ParameterId> counted;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const ParameterId id : graph.nodes[i].parameters)
      if (counted.insert(id).second)
        costs.nodes[i] += of_number * static_cast<double>(graph.parameters[index_of(id)].shape.count());
  constexpr double copies = 2, reads_and_writes = 2;  // a copy forward and one backward
  costs.crossing_byte = of_byte * copies * reads_and_writes;
  return costs;
}

}  // namespace ronda
