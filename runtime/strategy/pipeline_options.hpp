#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include <ronda/data/batch_plan.hpp>

namespace ronda {

/// How a model is cut into the stages of a pipeline: see PipelineStrategy.
struct PipelineOptions {
  std::size_t stages = 0;  ///< 0: one more than `cuts`; without these as many as there are ranks
  /// The operations with which the second stage and those after it begin, by name, in their order. Empty: they are
  /// chosen by measured times.
  std::vector<std::string> cuts = {};

  /// The stages on so many ranks. Throws InputError where they do not fit each other.
  [[nodiscard]] std::size_t stages_on(std::size_t ranks) const;
  /// The part of each global batch that a rank computes, with the other ranks of its pipeline. Neighbouring ranks are
  /// stages of one pipeline: with two stages, ranks 0 and 1 are the first one. Throws as stages_on.
  [[nodiscard]] Shard shard(std::size_t rank, std::size_t ranks) const;
};

}  // namespace ronda
