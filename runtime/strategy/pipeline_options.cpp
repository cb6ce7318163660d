#include <ronda/core/counted.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/pipeline_options.hpp>
#include <ronda/runtime/strategy/rank_groups.hpp>

namespace ronda {

std::size_t PipelineOptions::stages_on(std::size_t ranks) const {
  const std::size_t named = cuts.empty() ? 0 : cuts.size() + 1;
  if (stages > 0 && named > 0 && stages != named)
    throw InputError(".pipeline.cuts makes " + counted(named, "stage") + ", and .pipeline.stages says " +
                     std::to_string(stages));
  const std::size_t count = stages > 0 ? stages : named > 0 ? named : ranks;
  if (count < 2)
    throw InputError(
        "a pipeline has two stages or more (.pipeline.stages), each on a rank of its own; on one rank take .strategy = "
        "mirrored");
  if (ranks % count != 0)
    throw InputError(counted(ranks, "rank") + " cannot be pipelines of " + std::to_string(count) +
                     " stages (.pipeline.stages): give a multiple of " + std::to_string(count) + " ranks");
  return count;
}

Shard PipelineOptions::shard(std::size_t rank, std::size_t ranks) const {
  return RankGroups::shard_of(rank, ranks, stages_on(ranks));
}

}  // namespace ronda
