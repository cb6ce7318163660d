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

/// A place in a training to go back to.
struct TrainingPosition {
  std::uint64_t step = 0, epoch = 1, updates = 0;
  double rate_factor = 1;
  bool keeps_zeros = false;   ///< of weights that are pruned
  Deal deal;                  ///< of the micro-batches
  EpochBatches batches = {};  ///< of the epoch
};

/// How far a training has come: what a checkpoint remembers beside states.
struct TrainingProgress {
  std::uint64_t step = 0;                                 ///< steps done, over all epochs
  EpochBatches batches = {};                              ///< that the steps of the current epoch have taken
  EpochReport current;                                    ///< the epoch under way: sums, not means, in train_*
  double weight = 0;                                      ///< of the samples these sums are over
  std::vector<EpochReport> history;                       ///< epochs that are over
  double last_loss = StepReport::unknown;                 ///< of the last step that had samples which count
  std::uint64_t samples_before = 0;                       ///< of the steps before a checkpoint
  double seconds_before = 0;                              ///< likewise
  std::uint64_t resumed_step = 0;                         ///< of the checkpoint; 0: from the start
  std::filesystem::path resumed_from = {};                ///< its folder; empty: none
  std::map<std::string, std::vector<double>> hooks = {};  ///< what hooks have kept there, by their names
};

}  // namespace ronda
