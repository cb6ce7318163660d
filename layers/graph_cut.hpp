#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/layers/graph.hpp>

namespace ronda {

/// A model that is computed in parts, one after another: where its list of operations may be cut, and the parts.
///
/// A part has the operations from its first node to the one before the next part's. The values that *cross* the cut are
/// those from before it that nodes behind it read: one between two layers; within a residual block two, what the main
/// path has reached and the block's input for its shortcut:
///
///     x → conv1 → relu1 → | → conv2 → add1 →        before `conv2`: relu1's output and x
///     └─────────────────  |  ──────────┘
///
/// A part gives them to the next one, in the order in which they are computed: the last is its output, the others are
/// Graph::passed. The next is given them by inputs of the name `received_field`, its first ones, in the same order. A
/// value that is read only further behind goes through the parts between. Parameters, states and operations keep their
/// names.
inline constexpr std::string_view received_field = "received";

/// The nodes, as places in Graph::nodes, at which a part may begin: the values that cross there are of float32; there
/// are parameters on both sides, and none of them, and no state, is read on both; no node before has the same name, as
/// within an attention. Of neighbours that one operation computes, such as a convolution and its ReLU, the first alone
/// is listed, though a part may begin at the others too.
[[nodiscard]] std::vector<std::size_t> cut_places(const Graph& graph);

/// Bytes of the values that cross before this node, in float32.
[[nodiscard]] std::size_t crossing_bytes(const Graph& graph, std::size_t place);

/// Whether a node from `begin` on and before `end` reads a parameter.
[[nodiscard]] bool has_parameters(const Graph& graph, std::size_t begin, std::size_t end);

/// Of cut_places those that leave parameters to each of as many parts as can be. Of those with the same parameters
/// before them it is the one where the fewest bytes cross, of equal ones the first.
[[nodiscard]] std::vector<std::size_t> places_between_parameters(const Graph& graph);

/// The place of the node of this name, at which a part may begin. Throws InputError, which names it and says why, for a
/// name that there is not, and where no part may begin.
[[nodiscard]] std::size_t cut_place(const Graph& graph, std::string_view name);

/// The parts that begin with the first node and with these. Their parameters and states are numbered anew, in the
/// order of the whole. Throws InputError where a part would have no operation, and where a field of the batch has
/// the name `received_field`.
/// @param places  as cut_place gives them, ascending
[[nodiscard]] std::vector<Graph> cut(const Graph& graph, std::span<const std::size_t> places);

/// A place at which a part may begin, and what that costs each of the two parts beside their nodes.
struct CutPlace {
  std::size_t place = 0;
  double cost = 0;
};
/// Where a list of costs is cut into `parts` neighbours so that the most costly part is as cheap as can be.
/// @param costs  of the nodes
/// @param allowed  ascending
/// Returns parts - 1 of these, ascending; of equal choices the first. Throws InputError where there are too few.
[[nodiscard]] std::vector<std::size_t> balanced_cut(std::span<const double> costs, std::span<const CutPlace> allowed,
                                                    std::size_t parts);

}  // namespace ronda
