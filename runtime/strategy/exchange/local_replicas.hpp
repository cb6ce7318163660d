#pragma once
#include <string>
#include <string_view>

#include <ronda/collectives/communicator.hpp>
#include <ronda/runtime/strategy/replica/replica.hpp>
#include <ronda/runtime/strategy/step/own_steps.hpp>

namespace ronda {

// Functions for exchanges whose ranks make local steps, so that replicas differ between two synchronisations.

/// Throws InputError, with the reason and the remedy, if a replica cannot make local steps.
void require_local_steps(const Replica& replica, std::string_view strategy);

/// Returns, as a text, the ranks with steps that were not finite. Empty: no rank has one. Collective.
/// @param sent  steps of this rank that its last sums cover
[[nodiscard]] std::string explain_own_steps(const Communicator& communicator, const OwnSteps& sent);

/// Replaces the average of the parameters, which the replica has, by its mean over the ranks. The ranks' values are
/// equal. A frozen parameter, whose average is its value, keeps its bits. Collective.
void take_mean_of_average(Communicator& communicator, const Replica& replica);

}  // namespace ronda
