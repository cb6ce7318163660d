#include <ronda/core/text.hpp>
#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>

namespace ronda {

std::size_t Pipeline::stages_on(std::size_t ranks) const {
  const std::size_t named = cuts.empty() ? 0 : cuts.size() + 1;
  if (stages > 0 && named > 0 && stages != named)
    throw InputError(setting("cuts") + " makes " + counted(named, "stage") + ", and " + setting("stages") + " says " +
                     std::to_string(stages));
  const std::size_t count = stages > 0 ? stages : named > 0 ? named : ranks;
  if (count < 2)
    throw InputError("a pipeline has two stages or more (" + setting("stages") +
                     "), each on a rank of its own; on one rank take " + setting("strategy", "mirrored"));
  if (ranks % count != 0)
    throw InputError(counted(ranks, "rank") + " cannot be pipelines of " + std::to_string(count) + " stages (" +
                     setting("stages") + "): give a multiple of " + std::to_string(count) + " ranks");
  return count;
}

Shard Pipeline::shard(std::size_t rank, std::size_t ranks) const {
  return RankGroups::shard_of(rank, ranks, stages_on(ranks));
}

void check(const Pipeline&, const Demands& demands) {
  refuse_audits(demands, Pipeline::name,
                "each rank updates the parameters of its stage alone, and the others' copies are made anew");
  refuse_all_but_float32_on_processors(demands, Pipeline::name);
  refuse_unequal_shares(demands, setting("strategy", "pipeline"), "all micro-batches pass through all ranks");
}

}  // namespace ronda
