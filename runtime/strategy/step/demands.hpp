#pragma once
#include <string>
#include <string_view>

#include <ronda/collectives/collective.hpp>
#include <ronda/collectives/compression.hpp>
#include <ronda/core/message.hpp>
#include <ronda/optim/optimizer.hpp>

namespace ronda {

/// Features that a training needs from its strategy; each strategy's `check` rejects those that it does not support.
struct Demands {
  AllreduceAlgorithm allreduce = AllreduceAlgorithm::automatic;
  Compression compression = Compression::none;  ///< of gradients
  bool audits = false;                          ///< replicas are compared between steps
  bool unequal_shares = false;                  ///< faster ranks take more micro-batches
  std::string_view half_type = {};              ///< precision of layers of a half type: `mixed_bfloat16`; empty: none
  bool on_gpu = false;
  bool prunes = false;
  bool exact = false;        ///< equal trainings have equal bits
  bool timed_saves = false;  ///< checkpoints come by time, not by steps
};

/// Throws InputError if a training compares replicas but the strategy makes them equal.
/// @param why  a clause: `a rank's update is written to all others, an error in it too`
void refuse_audits(const Demands& demands, std::string_view strategy, std::string_view why);
/// Throws InputError if ranks take unequal shares.
/// @param where  option that excludes them: `.strategy = split`
/// @param why    a clause: `the ranks of a group compute the same samples`
void refuse_unequal_shares(const Demands& demands, const Message& where, std::string_view why);
/// Throws InputError for GPUs and half types.
void refuse_all_but_float32_on_processors(const Demands& demands, std::string_view strategy);

// Refusals that several strategies share. Each throws InputError, with the remedy.

/// For a strategy that sums whole gradients.
/// @param parameter  its gradient is sparse
[[noreturn]] void refuse_sparse_gradient(const std::string& parameter, std::string_view strategy);
/// For a strategy whose ranks have parts of parameters.
/// @param why  a clause: `a rank has parts of them`
[[noreturn]] void refuse_update_of_whole(const Optimizer& optimizer, std::string_view strategy, std::string_view why);
/// For ranks that take the same micro-batches.
/// @param ranks  `all stages of a pipeline`
[[noreturn]] void refuse_other_micro_batches(const std::string& ranks);

}  // namespace ronda
