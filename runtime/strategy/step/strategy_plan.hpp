#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/collectives/communicator.hpp>
#include <ronda/core/device_context.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/runtime/strategy/replica/memory_use.hpp>
#include <ronda/runtime/strategy/replica/rank_picker.hpp>

namespace ronda {

/// Line of a plan that describes how updates are divided; the bits of a training do not depend on it.
inline constexpr std::string_view update_by_parts_line = "update by parts in the node's memory";

/// A strategy's plan for this rank, made before its first step.
struct StrategyPlan {
  ComputeDevice device;            ///< device that the model computes on
  std::size_t batch_capacity = 0;  ///< rows per micro-batch
  Shape outputs;                   ///< shape of the model's outputs, for a micro-batch
  /// Elements of the parameters' arena that this rank updates, and stores optimizer states of; nullopt: all.
  std::optional<Range> states = {};
  MemoryUse memory;
  std::vector<std::string> lines;  ///< settings that the ranks agreed on, one per line
  Picks picks;                     ///< the chosen primitives
  bool timed_something = false;    ///< some of them were chosen by timing in this run

  /// Throws InputError, agreed, if the ranks' lines differ. Collective.
  void require_equal_on(const Communicator& communicator) const;
  /// Hash of `lines`.
  [[nodiscard]] std::string hash() const;
};

}  // namespace ronda
