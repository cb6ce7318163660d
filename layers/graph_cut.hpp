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
/// A part has the operations from its first node to the one before the next part's. What it is given by the part before
/// is one of its inputs, by the name `received_field`; what it gives to the next is its output. Its parameters, states
/// and operations keep their names.
inline constexpr std::string_view received_field = "received";

/// The nodes, as places in Graph::nodes, at which a part may begin: of all that lies before, they and those behind read
/// one value alone, of float32; there are parameters on both sides, and none of them, and no state, is read on both. Of
/// neighbours that one operation computes, such as a convolution and its ReLU, the first alone is listed, though a part
/// may begin at the others too.
[[nodiscard]] std::vector<std::size_t> cut_places(const Graph& graph);

/// Whether a node from `begin` on and before `end` reads a parameter.
[[nodiscard]] bool has_parameters(const Graph& graph, std::size_t begin, std::size_t end);

/// The place of the node of this name, at which a part may begin. Throws InputError, which names it and says why, for a
/// name that there is not, and where no part may begin.
[[nodiscard]] std::size_t cut_place(const Graph& graph, std::string_view name);

/// The parts that begin with the first node and with these. Their parameters and states are numbered anew, in the
/// order of the whole. Throws InputError where a part would have no operation.
/// @param places  as cut_place gives them, ascending
[[nodiscard]] std::vector<Graph> cut(const Graph& graph, std::span<const std::size_t> places);

/// Where a list of costs is cut into `parts` neighbours so that the most costly part is as cheap as can be.
/// @param costs  of the nodes
/// @param allowed  places at which a part may begin, ascending
/// Returns parts - 1 of these, ascending; of equal choices the first. Throws InputError where there are too few.
[[nodiscard]] std::vector<std::size_t> balanced_cut(std::span<const double> costs, std::span<const std::size_t> allowed,
                                                    std::size_t parts);

}  // namespace ronda
