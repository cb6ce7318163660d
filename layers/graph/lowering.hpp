#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/layers/program.hpp>

namespace ronda::graph {

/// Makes one operation of neighbours that one can do: a convolution with the ReLU and the pooling behind it, a dense
/// product, a batch norm or a sum with its ReLU; where nobody else reads what lies between. Values keep their places.
void fuse(Graph& graph);

/// A value of the graph, or one between two of its operations, as a device has it: with a layout.
struct DeviceValue {
  TensorDesc desc;
  /// Features (N, H·W·C) that are the bytes of an image in their order: one sample of it.
  std::optional<TensorDesc> flattened = std::nullopt;
  std::size_t base = 0;  ///< the value that owns the bytes; a value that owns them names itself
  std::optional<std::size_t> input = std::nullopt;  ///< of a value that owns its bytes: the number of the graph's input
  bool gradient = false;                            ///< whether its gradient is needed
};

/// An operation that the device runs.
struct Step {
  std::string name;
  OperationSpec spec;
  std::vector<std::size_t> inputs;  ///< numbers of values
  std::vector<ParameterId> parameters;
  std::vector<StateId> states;
  std::size_t output = 0;  ///< the number of a value
  std::unique_ptr<Operation> operation;
};

/// A graph, lowered: the operations and layouts of one device, in the order in which they run.
struct Lowered {
  std::vector<DeviceValue> values;
  std::vector<Step> steps;
  std::size_t output = 0;                    ///< the number of a value
  std::vector<std::size_t> passed;           ///< the numbers of values that are given on beside it
  std::vector<ParameterRequest> parameters;  ///< by ParameterId
  std::vector<std::string> lines;            ///< the choice for each step
  std::string first_cpu_only_operation;      ///< its name; empty: none
};

/// Makes the operations of `graph`, and reorders between two operations that need different layouts. The output and
/// what is passed are plain, with features in (C, H, W) order; what is passed is no input itself, but a copy. Throws
/// InputError for an operation that the device does not have.
[[nodiscard]] Lowered lower(const Graph& graph, Primitives& primitives, Picker& picker, const ProgramOptions& options);

}  // namespace ronda::graph
