#pragma once
#include <memory>
#include <optional>

#include <ronda/optim/optimizer.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/optim/updater.hpp>
#include <ronda/runtime/strategy/step/mirrored_options.hpp>
#include <ronda/runtime/strategy/step/step_queue.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>

namespace ronda {

/// Binds the optimizer to the replica, and makes the updater that applies it.
/// @param optimizer  must outlive the updater, as must the replica
/// @param parts      if ranks have parts of the model, or of the sums of gradients (UpdaterOptions::parts)
/// @param sums       sums of gradients, if this rank lacks those of others (UpdaterOptions::sums)
/// Throws InputError for invalid options.
[[nodiscard]] std::unique_ptr<Updater> make_updater(const MirroredOptions& options, Replica& replica,
                                                    Optimizer& optimizer, const Schedule& schedule,
                                                    SumOverParts* parts = nullptr,
                                                    const std::optional<ArenaRange>& sums = {});

/// The steps that these options describe.
[[nodiscard]] StepQueueOptions queue_options(const MirroredOptions& options);

}  // namespace ronda
