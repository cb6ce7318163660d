#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/state.hpp>
#include <ronda/layers/graph.hpp>

namespace ronda {

/// Splits operations of a model over the ranks of a group, each of which computes a part (tensor parallelism). For
/// example two dense layers with an elementwise operation between them, the first split by columns, the second by rows:
///
///                   whole            this rank's part                  whole
///     forward         x  →  x · Wᵀ, some outputs  → ReLU →  some inputs of V  →  sum over the ranks  →  y
///     backward   sum over the ranks  ←  gradient of x, from some outputs  ←  …                       ←  gradient of y
///
/// This takes one sum in forward and one in backward (Shoeybi et al., "Megatron-LM: training multi-billion parameter
/// language models using model parallelism", 2019). If the reader of an operation split by columns needs the full
/// output, the parts are gathered first. If an operation split by rows has a full input, each rank reads its part of
/// it.
enum class SplitBy : std::uint8_t {
  columns,  ///< each rank computes some of the outputs
  rows,     ///< each rank reads some of the inputs, and computes a partial sum of each output
  heads,    ///< attention: first projection by columns, then some of the heads, last projection by rows
};
[[nodiscard]] std::string_view name_of(SplitBy by) noexcept;

/// An operation, by its name in the graph, and how it is split.
struct SplitChoice {
  std::string name;
  SplitBy by = SplitBy::columns;
  bool operator==(const SplitChoice&) const = default;
};
/// `dense1=columns`. Throws InputError for another text.
[[nodiscard]] SplitChoice parse_split_choice(std::string_view text);
[[nodiscard]] std::string text_of(const SplitChoice& choice);
/// Comma-separated: `dense1=columns, dense2=rows`.
[[nodiscard]] std::string text_of(std::span<const SplitChoice> choices);

struct SplitGraph {
  /// The graph of each rank of a group. Operations and parameters keep their names, and parameters their order.
  std::vector<Graph> parts;
  /// By ParameterId of the full graph; nullopt: every part has the full parameter, and the same gradient.
  std::vector<std::optional<ParameterSlices>> slices;
};

/// Splits a graph over `parts` ranks, as evenly as possible. With one part the graph is unchanged. Throws InputError,
/// with the operation and the reason, if an operation does not exist or cannot be split in this way.
[[nodiscard]] SplitGraph split(const Graph& graph, std::span<const SplitChoice> choices, std::size_t parts);

/// The names of all operations that can be split, including attentions, which are split by heads.
[[nodiscard]] std::vector<std::string> splittable(const Graph& graph);

}  // namespace ronda
