#pragma once
#include <cstddef>
#include <vector>

#include <ronda/layers/graph.hpp>
#include <ronda/layers/graph_cut.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/pipeline/staged_model.hpp>

namespace ronda {

/// What parts of a model cost the rank that has them, in seconds of a micro-batch.
struct NodeCosts {
  std::vector<double> nodes;  ///< by Graph::nodes: see measured_costs
  double crossing_byte = 0;   ///< of a value that crosses a cut, for each of the two ranks

  /// These places, each with the seconds that what crosses there, and its gradient, take each of the two ranks.
  /// @param places  in Graph::nodes
  [[nodiscard]] std::vector<CutPlace> with_costs(const Graph& graph, const std::vector<std::size_t>& places) const;
};

/// Of a node: forward and backward, as measured on random samples, and what its parameters take: their gradients are
/// summed over the micro-batches, and once in a step they are updated. These, and what crosses, take as long as the
/// memory that they read and write, of which a byte is measured too. Throws ResourceError.
[[nodiscard]] NodeCosts measured_costs(HostProgram& whole, const Graph& graph, const StageRequest& request);

}  // namespace ronda
