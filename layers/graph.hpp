#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ronda/core/parameter.hpp>
#include <ronda/core/state.hpp>
#include <ronda/layers/initializer.hpp>
#include <ronda/layers/operation_spec.hpp>

namespace ronda {

/// What an operation of a model gives, or a field of the batch, before there is any memory: a place in a graph. A copy
/// means the same place.
struct Value {
  std::size_t id = 0;
  Shape shape;                   ///< logical, with the batch: (N, …)
  DType dtype = DType::float32;  ///< float32 stands for whatever type the device computes in
  bool operator==(const Value&) const = default;
};

/// A parameter of a graph. The layout of its bytes is the choice of the operation that reads it.
struct GraphParameter {
  std::string name;                      ///< `dense1.weight`
  Shape shape;                           ///< as in files
  std::int64_t fan_in = 0, fan_out = 0;  ///< inputs and outputs of a weight's neuron; 0: starts at zero
  std::optional<Initializer> initializer = std::nullopt;  ///< where the layer insists; otherwise the model's
  std::optional<std::int64_t> zero_row = std::nullopt;    ///< of a table: a row that starts at zero
  bool sparse = false;  ///< a table whose gradient is to be sparse; it is where embeddings alone read it
};

/// What an operation keeps from step to step and is not trained: a running mean.
struct GraphState {
  std::string name;  ///< `batch_norm1.mean`
  Shape shape;
  DType dtype = DType::float32;
  float initial = 0;
  Scope scope = Scope::averaged;
};

enum class StateId : std::uint32_t {};

/// An operation, what it reads and what it gives.
struct GraphNode {
  std::string name;  ///< `conv1`
  OperationSpec operation;
  std::vector<std::size_t> inputs = {};  ///< places in Graph::values
  std::vector<ParameterId> parameters = {};
  std::vector<StateId> states = {};
  std::size_t output = 0;
};

struct GraphInput {
  std::string field;  ///< of the batch
  std::size_t value = 0;
};

/// A model as a list of operations, each behind those whose values it reads. Layers build it (see GraphBuilder); passes
/// walk it.
struct Graph {
  std::vector<Value> values;
  std::vector<GraphInput> inputs;
  std::vector<GraphNode> nodes;
  std::vector<GraphParameter> parameters;  ///< by ParameterId
  std::vector<GraphState> states;          ///< by StateId
  std::size_t output = 0;
  std::vector<std::size_t> passed;  ///< other values that are given on: see graph_cut.hpp

  /// How many nodes read a value; the output, and what is passed, count as read once more.
  [[nodiscard]] std::size_t readers(std::size_t value) const;
};

/// Throws InputError for a BatchNorm that would normalise one value per channel in training: its output is 0 whatever
/// the value is, and nothing is learnt behind it.
void require_normalisable(const Graph& graph);

}  // namespace ronda
