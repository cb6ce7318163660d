#pragma once
#include <ronda/layers/graph.hpp>

namespace ronda::graph {

/// Makes one operation of neighbours that one can do: a convolution with the ReLU and the pooling behind it, a dense
/// product, a batch norm or a sum with its ReLU; where nobody else reads what lies between. Values keep their places.
void fuse(Graph& graph);

}  // namespace ronda::graph
