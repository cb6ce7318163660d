#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <ronda/core/event_sink.hpp>
#include <ronda/data/batch_plan.hpp>
#include <ronda/runtime/trainer/epoch_batches.hpp>

namespace ronda {

/// A position in a training to return to.
struct TrainingPosition {
  std::uint64_t step = 0, epoch = 1, updates = 0;
  double rate_factor = 1;
  bool keeps_zeros = false;   ///< pruned weights stay zero
  Deal deal;                  ///< distribution of the micro-batches over the ranks
  EpochBatches batches = {};  ///< batches of the epoch that its steps have taken
};

/// Progress of a training: the contents of a checkpoint without the states.
struct TrainingProgress {
  std::uint64_t step = 0;                                 ///< steps done, over all epochs
  EpochBatches batches = {};                              ///< batches of the current epoch that its steps have taken
  EpochReport current;                                    ///< the current epoch: sums, not means, in train_*
  double weight = 0;                                      ///< total weight of the samples in these sums
  std::vector<EpochReport> history;                       ///< finished epochs
  double last_loss = StepReport::unknown;                 ///< loss of the last step with samples that count
  std::uint64_t samples_before = 0;                       ///< samples of the steps before a checkpoint
  double seconds_before = 0;                              ///< likewise
  std::uint64_t resumed_step = 0;                         ///< of the checkpoint; 0: from the start
  std::filesystem::path resumed_from = {};                ///< its folder; empty: none
  std::map<std::string, std::vector<double>> hooks = {};  ///< values that hooks keep in checkpoints, by hook name
};

}  // namespace ronda
