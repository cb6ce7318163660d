#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ronda/collectives/world.hpp>
#include <ronda/core/message.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/data/dataset.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/optim/schedule.hpp>
#include <ronda/runtime/trainer/training_options.hpp>

namespace ronda {

/// A training's options, completed with the values that depend on data, ranks and machine.
struct TrainingSetup {
  TrainingOptions options;                                      ///< batch size, rate and so on are set
  ThreadCount threads = {};                                     ///< this rank's
  std::vector<int> threads_of_ranks = {};                       ///< all ranks', by rank
  bool prefetch = false;                                        ///< a core is free for reading ahead
  std::uint64_t first_step = 0;                                 ///< steps of earlier fits
  std::uint64_t total_steps = 0, epochs = 0;                    ///< at the end, including those of earlier fits
  std::map<std::string, std::string> options_that_matter = {};  ///< see Resumption
  std::map<std::string, std::string> environment = {};          ///< see environment_of; timings and bits depend on it
};

/// Throws InputError for options that are invalid for this data and these ranks, or whose files cannot be created. Not
/// collective.
/// @param steps, epochs  done by earlier fits
/// @param own            by rank, the result of own_task_hosts there
[[nodiscard]] TrainingSetup complete(TrainingOptions options, const World& world, const Dataset& train,
                                     std::uint64_t steps, std::uint64_t epochs, const std::vector<std::string>& own);

/// Throws InputError, agreed, if options or data differ between ranks. Collective.
void require_equal_on_ranks(const TrainingSetup& setup, const Communicator& communicator, const Dataset& test);

/// The part of each global batch that this rank computes; all ranks of a pipeline, or of a group that splits a model,
/// have the same part. Not collective. Throws InputError if servers leave no worker, and as Pipeline::shard and
/// Split::shard do.
[[nodiscard]] Shard data_shard(const TrainingOptions& options, const Communicator& communicator);

/// How a rank's training batches are cut, if `shard` is its part of each global batch.
[[nodiscard]] BatchPlan training_plan(const TrainingOptions& options, Shard shard, const Dataset& train);

/// The rate of each update of this fit.
[[nodiscard]] Schedule schedule_of(const TrainingSetup& setup, const BatchPlan& plan);
/// A warning if the training ends before its warm-up; otherwise empty.
[[nodiscard]] Message warmup_warning(const TrainingSetup& setup, const BatchPlan& plan);

/// Processors of all hosts, library and its version, threads of each rank, ranks per node. Collective.
[[nodiscard]] std::map<std::string, std::string> environment_of(const World& world, const Primitives& primitives,
                                                                const std::vector<int>& threads_of_ranks);
/// `2`, or if ranks differ `2 (ranks 0-3, 6), 1 (ranks 4-5)`.
[[nodiscard]] std::string text_of_threads(const std::vector<int>& threads_of_ranks);

}  // namespace ronda
