#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ronda/layers/graph.hpp>
#include <ronda/layers/parameter_request.hpp>
#include <ronda/layers/primitives.hpp>

namespace ronda::graph {

/// A value that has bytes, on one device.
struct Place {
  TensorDesc desc;
  /// Features (N, H·W·C) that are the bytes of an image in their order: one sample of it.
  std::optional<TensorDesc> flattened = std::nullopt;
  std::size_t base = 0;                             ///< the place whose bytes it shows; itself
  std::optional<std::size_t> input = std::nullopt;  ///< of a base: which of the graph's inputs it is
  bool gradient = false;                            ///< whether its gradient is needed
};

/// An operation of a device.
struct Step {
  std::string name;
  OperationSpec spec;
  std::vector<std::size_t> inputs;  ///< places
  std::vector<ParameterId> parameters;
  std::vector<StateId> states;
  std::size_t output = 0;
  std::unique_ptr<Operation> operation;
};

/// A graph in one device's operations and layouts, in the order in which they run.
struct Lowered {
  std::vector<Place> places;
  std::vector<Step> steps;
  std::size_t output = 0;
  std::vector<ParameterRequest> parameters;  ///< by ParameterId
  std::vector<std::string> lines;            ///< what was chosen
  std::string processor_alone;               ///< the first operation that is a user's own; empty: none
};

/// Makes the operations of `graph`, with reorders between them where an operation cannot read what another gives. The
/// output is plain, with features in (C, H, W) order. Throws InputError for an operation that the device does not have.
/// @param input_gradient  whether gradients of the graph's float inputs are needed
[[nodiscard]] Lowered lower(const Graph& graph, Primitives& primitives, Picker& picker, Mode mode, bool input_gradient);

}  // namespace ronda::graph
