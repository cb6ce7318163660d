#pragma once
#include <string>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/parallel.hpp>

namespace ronda {

/// A detail: the cores that each rank is bound to, its threads, who moves messages along. A note where a setting of
/// OpenMP leaves cores of a rank idle. Warnings, with the remedy: where a rank has more threads than cores to run them
/// on (its binding, other ranks, a container's quota), where a binding gives several ranks one core though there are
/// more, and where OpenMP binds threads of several ranks to the same cores. Collective; the sink of rank 0 hears it.
/// @param threads       of this rank
/// @param threads_text  of all ranks
void tell_binding(const World& world, const ThreadCount& threads, const std::string& threads_text, EventSink& sink);

/// Why a rank computes with more threads than it has cores for, and what to do: `computes with 2 threads on 1 core, …`.
/// Empty where it does not.
/// @param bound    cores that it may run on, shared ones included
/// @param machine  cores of its machine or container
/// @param ranks    on that machine
[[nodiscard]] std::string why_too_many_threads(int threads, const CoreShare& share, int bound, int machine, int ranks);

}  // namespace ronda
