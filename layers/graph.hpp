#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/state.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/layers/operation_spec.hpp>

namespace ronda {

/// A value in a graph: the output of an operation, or a field of the batch. It has no memory; copies refer to the same
/// value.
struct Value {
  std::size_t id = 0;
  Shape shape;                   ///< logical, with the batch axis: (N, …)
  DType dtype = DType::float32;  ///< float32 stands for the type that the device computes in
  bool operator==(const Value&) const = default;
};

/// A parameter of a graph. The operation that reads it chooses the layout of its bytes.
struct GraphParameter {
  std::string name;                      ///< `dense1.weight`
  Shape shape;                           ///< as in files
  std::int64_t fan_in = 0, fan_out = 0;  ///< inputs and outputs of a weight's neuron; 0: starts at zero
  std::optional<Initializer> initializer = std::nullopt;  ///< nullopt: the model's initializer
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< row of a table that starts at zero
  bool sparse = false;                                    ///< sparse gradient, for a table that only embeddings read
};

/// A value that an operation keeps from step to step and that is not trained, such as a running mean.
struct GraphState {
  std::string name;  ///< `batch_norm1.mean`
  Shape shape;
  DType dtype = DType::float32;
  float initial = 0;
  Scope scope = Scope::averaged;
};

enum class StateId : std::uint32_t {};

/// An operation with its inputs, parameters, states and output.
struct GraphNode {
  std::string name;  ///< `conv1`
  OperationSpec operation;
  std::vector<std::size_t> inputs = {};  ///< indices into Graph::values
  std::vector<ParameterId> parameters = {};
  std::vector<StateId> states = {};
  std::size_t output = 0;
};

struct GraphInput {
  std::string field;  ///< name of a field of the batch
  std::size_t value = 0;
};

/// A model as a list of operations in execution order. Layers build it (see GraphBuilder); a Program executes it.
struct Graph {
  std::vector<Value> values;
  std::vector<GraphInput> inputs;
  std::vector<GraphNode> nodes;
  std::vector<GraphParameter> parameters;  ///< by ParameterId
  std::vector<GraphState> states;          ///< by StateId
  std::size_t output = 0;
  std::vector<std::size_t> passed;  ///< further outputs, for the next part: see graph_cut.hpp

  /// The number of nodes that read a value, plus one if it is the output or in `passed`.
  [[nodiscard]] std::size_t readers(std::size_t value) const;
};

/// Throws InputError for a BatchNorm that would normalise one value per channel in training: its output would be 0 for
/// every value, and no later layer could learn.
void require_normalisable(const Graph& graph);

}  // namespace ronda
