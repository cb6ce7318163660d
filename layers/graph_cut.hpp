#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/layers/graph.hpp>

namespace ronda {

/// Cuts a model into parts that are computed one after another.
///
/// A part has the operations from its first node to the node before the next part. Values *cross* a cut if a node
/// before it computes them and a node after it reads them: one between two layers; two within a residual block, the
/// value of the main path and the block's input for its shortcut:
///
///     x → conv1 → relu1 → | → conv2 → add1 →        before `conv2`: relu1's output and x
///     └─────────────────  |  ──────────┘
///
/// A part passes these values to the next part in the order in which they are computed: the last is its output, the
/// others are Graph::passed. They are the first inputs of the next part, in the same order, each with the field name
/// `received_field`. A value that only a later part reads passes through the parts between. Parameters, states and
/// operations keep their names.
inline constexpr std::string_view received_field = "received";

/// The nodes at which a part may begin, as indices into Graph::nodes: all values that cross are float32; both sides
/// have parameters, and share no parameter or state; and no earlier node has the same name, as within an attention. For
/// fused nodes, such as a convolution and its ReLU, only the first is listed, although a part may begin at the others.
[[nodiscard]] std::vector<std::size_t> cut_places(const Graph& graph);

/// Bytes of the values that cross a cut before this node, in float32.
[[nodiscard]] std::size_t crossing_bytes(const Graph& graph, std::size_t place);

/// Whether a node in [begin, end) reads a parameter.
[[nodiscard]] bool has_parameters(const Graph& graph, std::size_t begin, std::size_t end);

/// The largest subset of `cut_places` in which each part has parameters. Among places with the same parameters before
/// them, the one where the fewest bytes cross is taken, or the first such place.
[[nodiscard]] std::vector<std::size_t> places_between_parameters(const Graph& graph);

/// The index of the node `name`. Throws InputError with the reason if it does not exist or no part may begin there.
[[nodiscard]] std::size_t cut_place(const Graph& graph, std::string_view name);

/// Cuts a graph before each of `places`. Each part numbers its parameters and states from 0, in the order of `graph`.
/// Throws InputError if a part would have no operation, or if a field of the batch is named `received_field`.
/// @param places  results of `cut_place`, ascending
[[nodiscard]] std::vector<Graph> cut(const Graph& graph, std::span<const std::size_t> places);

/// A place at which a part may begin, with the cost that a cut there adds to each of the two parts.
struct CutPlace {
  std::size_t place = 0;
  double cost = 0;
};
/// Cuts a list of costs into `parts` consecutive parts so that the highest cost of a part is as low as possible.
/// @param costs    cost of each node
/// @param allowed  ascending
/// Returns parts - 1 of the allowed places, ascending; the first of equally good choices. Throws InputError if there
/// are too few.
[[nodiscard]] std::vector<std::size_t> balanced_cut(std::span<const double> costs, std::span<const CutPlace> allowed,
                                                    std::size_t parts);

}  // namespace ronda
