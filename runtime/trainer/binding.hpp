#pragma once
#include <string>

#include <ronda/collectives/world.hpp>
#include <ronda/core/event_sink.hpp>
#include <ronda/core/parallel.hpp>

namespace ronda {

/// Reports how ranks and threads are placed on cores, to the sink of rank 0. Collective.
/// - Detail: the cores that each rank is bound to, its threads, and which thread moves messages.
/// - Note: a setting of OpenMP leaves cores of a rank idle.
/// - Warnings, with the remedy: a rank has more threads than cores to run them on (its binding, other ranks, a
///   container's quota); several ranks are bound to one core although there are more; OpenMP binds threads of several
///   ranks to the same cores.
/// @param threads       this rank's
/// @param threads_text  all ranks'
void tell_binding(const World& world, const ThreadCount& threads, const std::string& threads_text, EventSink& sink);

/// Why a rank computes with more threads than it has cores for, and the remedy: `computes with 2 threads on 1 core, …`.
/// Empty if it does not.
/// @param bound    cores that the rank may run on, including shared ones
/// @param machine  cores of its machine or container
/// @param ranks    on that machine
[[nodiscard]] Message why_too_many_threads(int threads, const CoreShare& share, int bound, int machine, int ranks);

}  // namespace ronda
