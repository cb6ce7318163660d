#pragma once
#include <string_view>

#include <ronda/core/option.hpp>
#include <ronda/runtime/strategy/demands.hpp>

namespace ronda {

/// Each rank keeps the optimizer's states of its share of the parameters alone (share_of_rank), and updates that share;
/// the bits are those of Mirrored. Ranks of one node sum by NodeReduce, others by ShardedUpdate.
struct Sharded {
  static constexpr std::string_view name = "sharded";

  /// The ranks of a node have one copy of the parameters, and of their average, in its shared memory, instead of one
  /// each. Each writes its share. Who sets parameters does it on one rank, or all to the same; see
  /// TrainingState::meet.
  bool one_copy = false;
  /// Each rank keeps the sums of its share of the gradients alone, and the memory of the others is used again during
  /// backward (ShardedGradients). Then there are no steps by hand, which could not see gradients, and all ranks take
  /// the same number of micro-batches.
  bool shard_gradients = false;
};

/// Throws InputError for what this strategy cannot do.
void check(const Sharded& options, const Demands& demands);

/// Calls `see(Option, field)` for each field.
template <class Options, class Settle, class Visitor>
void visit_sharded(Options& o, const Settle& settle, Visitor&& see) {
  see(settle(Option{.name = "one-copy", .help = "Ranks of a node share one copy of the parameters"}), o.one_copy);
  see(settle(Option{.name = "shard-gradients", .help = "Each rank keeps the summed gradients of its share only"}),
      o.shard_gradients);
}

}  // namespace ronda
