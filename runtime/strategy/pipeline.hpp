#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/option.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/strategy/demands.hpp>

namespace ronda {

/// The model is cut into stages, each on a rank, and micro-batches go from one to the next: see PipelineStrategy.
struct Pipeline {
  static constexpr std::string_view name = "pipeline";

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

/// Throws InputError for what this strategy cannot do.
void check(const Pipeline& options, const Demands& demands);

/// Calls `see(Option, field)` for each field.
template <class Options, class Settle, class Visitor>
void visit_pipeline(Options& o, const Settle& settle, Visitor&& see) {
  see(settle(Option{.name = "pipeline",
                    .help = "Stages of the model, one rank each",
                    .otherwise = "what --stages says, or the number of ranks",
                    .field = "stages",
                    .positive = true}),
      o.stages);
  see(settle(Option{.name = "stages",
                    .help = "First operation of each further stage: conv2,dense1",
                    .otherwise = "chosen by measured times",
                    .field = "cuts"}),
      o.cuts);
}

}  // namespace ronda
