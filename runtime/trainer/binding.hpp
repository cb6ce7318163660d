#pragma once
#include <ronda/collectives/world.hpp>
#include <ronda/runtime/core/event_sink.hpp>

namespace ronda {

/// A detail: the cores that each rank is bound to, its threads, who moves messages along. A warning where a binding
/// gives several ranks one core though there are more. Collective; the sink of rank 0 hears it.
void tell_binding(const World& world, int threads, EventSink& sink);

}  // namespace ronda
