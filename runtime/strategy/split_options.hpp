#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <ronda/data/batch_plan.hpp>
#include <ronda/layers/graph_split.hpp>

namespace ronda {

/// How the operations of a model are split over ranks: see SplitStrategy.
struct SplitOptions {
  std::size_t parts = 0;  ///< ranks that have one model together; 0: all
  /// `dense1=columns`, `dense2=rows`, `attention1=heads`. Empty: what a cost model says pays.
  std::vector<std::string> layers = {};

  /// The parts on so many ranks. Throws InputError where the ranks are no whole number of groups.
  [[nodiscard]] std::size_t parts_on(std::size_t ranks) const;
  /// The part of each global batch that a rank computes, with the other ranks of its group (RankGroups). Throws as
  /// parts_on.
  [[nodiscard]] Shard shard(std::size_t rank, std::size_t ranks) const;
  /// Throws InputError for a text that says nothing.
  [[nodiscard]] std::vector<SplitChoice> choices() const;
};

}  // namespace ronda
