#pragma once
#include <memory>
#include <optional>

#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/mirrored_options.hpp>
#include <ronda/runtime/strategy/replica.hpp>

namespace ronda {

/// Binds the optimizer to the replica, and makes what applies it.
/// @param optimizer  outlives the updater, as the replica does
/// @param parts      where ranks have parts of the model, or of the sums of gradients (UpdaterOptions::parts)
/// @param sums       of gradients, where those of others are not here (UpdaterOptions::sums)
/// Throws InputError for options that cannot be.
[[nodiscard]] std::unique_ptr<Updater> make_updater(const MirroredOptions& options, Replica& replica,
                                                    Optimizer& optimizer, const Schedule& schedule,
                                                    SumOverParts* parts = nullptr,
                                                    const std::optional<ArenaRange>& sums = {});

}  // namespace ronda
