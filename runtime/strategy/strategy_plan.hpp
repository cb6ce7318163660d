#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/compute_device.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/memory_use.hpp>
#include <ronda/runtime/strategy/rank_picker.hpp>

namespace ronda {

/// A line of a plan that says who updates what; the bits of a training do not depend on it.
inline constexpr std::string_view update_by_parts_line = "update by parts in the node's memory";

/// What a strategy planned for this rank before its first step.
struct StrategyPlan {
  ComputeDevice device;            ///< that the model computes on
  std::size_t batch_capacity = 0;  ///< rows of a micro-batch
  Shape outputs;                   ///< of the model, for a micro-batch
  /// Elements of the parameters' arena that this rank updates, and keeps optimizer states of; nothing: all.
  std::optional<Range> states = {};
  MemoryUse memory;
  std::vector<std::string> lines;  ///< what the ranks agreed on, a line each
  Picks picks;                     ///< the primitives that were chosen
  bool timed_something = false;    ///< some of them by timing in this run

  /// Throws InputError, agreed, where ranks have other lines. Collective.
  void require_equal_on(const Communicator& communicator) const;
  /// Of `lines`.
  [[nodiscard]] std::string hash() const;
};

}  // namespace ronda
