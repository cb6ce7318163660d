#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/option.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

/// The model is cut into stages, each on one rank, and micro-batches pass from stage to stage: see PipelineStrategy.
struct Pipeline {
  static constexpr std::string_view name = "pipeline";

  std::size_t stages = 0;  ///< 0: one more than the number of `cuts`; if these are empty, the number of ranks
  /// Names of the operations that start the second and each later stage, in their order. Empty: chosen by measured
  /// times.
  std::vector<std::string> cuts = {};

  /// The number of stages on `ranks` ranks. Throws InputError if the two do not match.
  [[nodiscard]] std::size_t stages_on(std::size_t ranks) const;
  /// The part of each global batch that a rank computes with the other ranks of its pipeline. Neighbouring ranks are
  /// stages of one pipeline: with two stages, ranks 0 and 1 form the first one. Throws as stages_on does.
  [[nodiscard]] Shard shard(std::size_t rank, std::size_t ranks) const;
};

/// Throws InputError for demands that this strategy cannot meet.
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
