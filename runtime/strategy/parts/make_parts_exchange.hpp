#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/collectives/fusion_buffer.hpp>
#include <ronda/core/buffer.hpp>
#include <ronda/layers/program.hpp>
#include <ronda/runtime/strategy/parts/parts_exchange.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/planned_rank_sums.hpp>
#include <ronda/runtime/strategy/parts/rank_groups.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

// What strategies whose ranks have parts of one model do alike when they are made.

namespace ronda {

/// Throws InputError, with the remedy, for other devices and types.
/// @param strategy  its name
void require_float32_on_processors(const MirroredOptions& options, std::string_view strategy);

/// Gives the replica its arenas, and plans the sums of its gradients. Collective over the ranks that have a part, and
/// over those of a group.
/// @param values  of the part's parameters
[[nodiscard]] std::unique_ptr<PartsExchange> make_parts_exchange(RankGroups& ranks, Replica& replica, Buffer values,
                                                                 FusionOptions fusion);
/// Sums of layers over the ranks that have a part. Collective over these. Null where there are none.
[[nodiscard]] std::unique_ptr<PlannedRankSums> make_rank_sums(Communicator& replicas, const Program& program);
/// How the ranks that have a part sum its gradients, on which the bits depend: a line a part. Collective.
/// @param noun  `part`, or what the strategy calls it
[[nodiscard]] std::vector<std::string> describe_sums(Communicator& all, const RankGroups& ranks,
                                                     const GradientExchange& exchange, const std::string& noun);

}  // namespace ronda
