#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/option.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/layers/graph_split.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

/// Tensor parallelism: ranks compute each large operation together, each a part, on the same samples: see
/// SplitStrategy.
struct Split {
  static constexpr std::string_view name = "split";

  std::size_t parts = 0;  ///< ranks that share one model; 0: all
  /// `dense1=columns`, `dense2=rows`, `attention1=heads`. Empty: chosen by a cost model.
  std::vector<std::string> layers = {};

  /// The number of parts on `ranks` ranks. Throws InputError if `ranks` is not a multiple of it.
  [[nodiscard]] std::size_t parts_on(std::size_t ranks) const;
  /// The part of each global batch that a rank computes with the other ranks of its group (RankGroups). Throws as
  /// parts_on does.
  [[nodiscard]] Shard shard(std::size_t rank, std::size_t ranks) const;
  /// Parses `layers`. Throws InputError for an invalid text.
  [[nodiscard]] std::vector<SplitChoice> choices() const;
};

/// Throws InputError for demands that this strategy cannot meet, and as `choices` does.
void check(const Split& options, const Demands& demands);

/// Calls `see(Option, field)` for each field.
template <class Options, class Settle, class Visitor>
void visit_split(Options& o, const Settle& settle, Visitor&& see) {
  see(settle(Option{.name = "split",
                    .help = "Ranks that share one model",
                    .otherwise = "the number of ranks",
                    .field = "parts",
                    .positive = true}),
      o.parts);
  see(settle(Option{.name = "split-layers",
                    .help = "Operations to split: dense1=columns,dense2=rows,attention1=heads",
                    .otherwise = "chosen by a cost model",
                    .field = "layers"}),
      o.layers);
}

}  // namespace ronda
