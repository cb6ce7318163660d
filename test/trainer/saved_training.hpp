#pragma once
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <ronda/runtime/trainer/training_options.hpp>

#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

namespace ronda::test {

/// One folder for all ranks.
struct SharedFolder {
  SharedFolder() : path(world().communicator().broadcast_text(own.path().string())) {}
  SharedFolder(const SharedFolder&) = delete;
  ~SharedFolder() {
    Communicator all = world().communicator();
    all.barrier();
  }
  TemporaryFolder own;
  std::filesystem::path path;
};

/// A small training of four steps an epoch where there are 90 samples, the last with a short batch.
constexpr std::uint64_t steps_per_epoch = 4, steps = 3 * steps_per_epoch;
inline TrainingOptions small(TrainingOptions options) {
  ::setenv("RONDA_CACHE_DIR", "/dev/null/none", 1);  // with no cache of plans
  options.threads = 1;
  options.epochs = 3;
  options.global_batch_size = 25;
  options.learning_rate = 0.05;
  options.bucket_bytes = 2048;
  return options;
}

/// @param every  steps; 0: at the end alone
inline TrainingOptions saving_in(const SharedFolder& folder, std::uint64_t every = 0) {
  TrainingOptions options;
  options.checkpoint_dir = folder.path;
  options.checkpoint_every.steps = every;
  return options;
}
inline TrainingOptions saving_in(const SharedFolder& folder, TrainingOptions options) {
  options.checkpoint_dir = folder.path;
  return options;
}

/// Trains by `train(options)`, a function that gives the trainer, and ends, saved, after `step` steps, because the last
/// rank is told to.
template <class Train>
void run_until(std::uint64_t step, TrainingOptions options, const Train& train) {
  const bool told = world().rank() + 1 == world().size();
  options.steps_in_flight = 1;  // more, and it is heard of later
  options.leave = [told, asked = std::uint64_t{0}, step]() mutable {
    return ++asked == step + 1 && told;
  };  // once at the start
  const auto training = train(std::move(options));
  CHECK(training->trainer.left());
  CHECK(training->trainer.statistics().steps() == step);
}

}  // namespace ronda::test
