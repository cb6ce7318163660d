#pragma once
#include <cstddef>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/strategy/pipeline/staged_model.hpp>
#include <ronda/runtime/strategy/step/stage_costs.hpp>

namespace ronda {

/// What all stages have cost, from what each rank says of its own. Collective.
/// @param all   the ranks of all pipelines, one pipeline's after the other's
/// @param mine  this rank's memory, and seconds that it computed and waited
[[nodiscard]] std::vector<StageCosts> gather_costs(Communicator& all, const StageCosts& mine, const StagedModel& model,
                                                   std::size_t micro_batches);

}  // namespace ronda
