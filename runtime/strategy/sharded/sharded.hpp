#pragma once
#include <memory>
#include <string_view>

#include <ronda/core/option.hpp>
#include <ronda/runtime/strategy/step/demands.hpp>

namespace ronda {

class ExchangePlan;

/// Each rank stores only the optimizer states of its share of the parameters (share_of_rank), and updates that share;
/// the bits are those of Mirrored. Ranks of one node sum by NodeReduce, others by ShardedUpdate.
struct Sharded {
  static constexpr std::string_view name = "sharded";

  /// The ranks of a node share one copy of the parameters and of their average, instead of one copy each. Each rank
  /// writes its share. To set parameters, write on one rank, or the same values on all; see TrainingState::meet.
  bool one_copy = false;
  /// Each rank stores only the sums of its share of the gradients; the memory of the other gradients is reused during
  /// backward (ShardedGradients). Manual steps, which could not see gradients, are then not possible, and all ranks
  /// take the same number of micro-batches.
  bool shard_gradients = false;
};

/// Throws InputError for demands that this strategy cannot meet.
void check(const Sharded& options, const Demands& demands);

[[nodiscard]] std::unique_ptr<ExchangePlan> exchange_plan(const Sharded& options);

/// Calls `see(Option, field)` for each field.
template <class Options, class Settle, class Visitor>
void visit_sharded(Options& o, const Settle& settle, Visitor&& see) {
  see(settle(Option{.name = "one-copy", .help = "Ranks of a node share one copy of the parameters"}), o.one_copy);
  see(settle(Option{.name = "shard-gradients", .help = "Each rank keeps the summed gradients of its share only"}),
      o.shard_gradients);
}

}  // namespace ronda
