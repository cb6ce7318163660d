#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/parameter_slices.hpp>
#include <ronda/layers/graph.hpp>

namespace ronda {

/// A model of which every operation that is split is computed by all ranks of a group, each a part of it. Of two dense
/// layers, the first by columns and the second by rows, with what works element by element between them:
///
///                   whole            this rank's part                  whole
///     forward         x  →  x · Wᵀ, some outputs  → ReLU →  some inputs of V  →  sum over the ranks  →  y
///     backward   sum over the ranks  ←  gradient of x, from some outputs  ←  …                       ←  gradient of y
///
/// So there is one sum forward and one backward (Shoeybi et al., "Megatron-LM: training multi-billion parameter
/// language models using model parallelism", 2019). An operation by columns whose reader wants the whole is gathered
/// behind it, and one by rows that is given the whole takes its part of it.
enum class SplitBy : std::uint8_t {
  columns,  ///< each rank has some of the outputs
  rows,     ///< each rank has some of the inputs; it gives a part of each output's sum
  heads,    ///< of an attention: its first projection by columns, its heads, its last projection by rows
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
/// One after another: `dense1=columns, dense2=rows`.
[[nodiscard]] std::string text_of(std::span<const SplitChoice> choices);

struct SplitGraph {
  /// What each rank of a group computes. Operations and parameters keep their names, and parameters their order.
  std::vector<Graph> parts;
  /// By ParameterId of the whole; nothing: every part has all of it, and the same gradient.
  std::vector<std::optional<ParameterSlices>> slices;
};

/// Splits a graph over `parts` ranks, as evenly as can be. With one part everything is as before. Throws InputError,
/// which names the operation and says why, for one that there is not, or that cannot be split so.
[[nodiscard]] SplitGraph split(const Graph& graph, std::span<const SplitChoice> choices, std::size_t parts);

/// The names of all operations that can be split; with heads for attentions.
[[nodiscard]] std::vector<std::string> splittable(const Graph& graph);

}  // namespace ronda
