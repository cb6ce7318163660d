// What a training does with odd options, and what its hooks may count on.
#include <cmath>
#include <cstdlib>
#include <limits>

#include <ronda/core/error.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_data.hpp"

using namespace ronda;
using namespace ronda::test;

namespace trainer_test {
namespace {

/// A small training of 48 images, with no cache of plans.
struct Training {
  explicit Training(TrainingOptions options) : trainer(world(), model, loss, prepared(std::move(options))) {}

  static TrainingOptions prepared(TrainingOptions options) {
    ::setenv("RONDA_CACHE_DIR", "/dev/null/none", 1);
    options.threads = 1;
    if (options.global_batch_size == 0) options.global_batch_size = 16;
    return options;
  }
  Evaluation fit() { return trainer.fit(data, data); }

  MemoryDataset data = toy_images(48, {9, 7, 1}, 4);
  Sequential model{Flatten(), Dense(9), ReLU(), Dense(4)};
  SoftmaxCrossEntropy loss;
  Trainer trainer;
};

TrainingOptions with(auto member, auto value) {
  TrainingOptions options;
  options.*member = value;
  return options;
}

}  // namespace

TEST_CASE("options that are no sensible numbers are refused") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  for (const double odd : {nan, infinite, -1.0}) {
    REQUIRE_THROWS_AS(Training(with(&TrainingOptions::clip_norm, odd)).fit(), Error);
    REQUIRE_THROWS_AS(Training(with(&TrainingOptions::warmup_epochs, odd)).fit(), Error);
  }
  REQUIRE_THROWS_AS(Training(with(&TrainingOptions::accumulate, 0)).fit(), Error);
  REQUIRE_THROWS_AS(Training(with(&TrainingOptions::steps, 0)).fit(), Error);
  REQUIRE_THROWS_AS(Training(with(&TrainingOptions::epochs, 0)).fit(), Error);
  TrainingOptions huge = with(&TrainingOptions::batch_size, std::size_t{1} << 50);
  require_mentions(message_of<InputError>([&] { check(huge); }), {"beyond any memory"});
  huge.global_batch_size = 16;
  require_mentions(message_of<InputError>([&] { check(huge); }), {".batch_size", ".global_batch_size"});
}

TEST_CASE("a training with as many steps as can be counted ends when a hook asks for it") {
  TrainingOptions options = with(&TrainingOptions::steps, std::numeric_limits<std::uint64_t>::max());
  options.warmup_epochs = 1e300;
  Training training(options);
  std::uint64_t steps = 0;
  training.trainer.add({.step =
                            [&](const StepReport& report) {
                              steps = report.step;
                              if (report.step == 4) training.trainer.stop();
                            },
                        .epoch = {},
                        .evaluation = {}});
  training.fit();
  REQUIRE(steps == 5);
}

TEST_CASE("the rate is scaled with the batch that there is, not with the one that was asked for") {
  TrainingOptions options = with(&TrainingOptions::global_batch_size, std::size_t{1000});
  options.learning_rate = 0.128;
  options.scale_learning_rate = "linear";
  Training training(options);
  double rate = 0;
  training.trainer.add(
      {.step = [&](const StepReport& report) { rate = report.learning_rate; }, .epoch = {}, .evaluation = {}});
  training.fit();
  REQUIRE(rate == Approx(0.048));
}

TEST_CASE("test data of another kind than the training data is refused") {
  const MemoryDataset wider = toy_images(8, {7, 9, 1}, 4);
  Training training({});
  require_mentions(message_of<Error>([&] { training.trainer.fit(training.data, wider); }),
                   {"test data", "input", "(7, 9, 1)", "(9, 7, 1)"});
}

TEST_CASE("going back over an epoch's end leaves the same bits, and a stop asked for meanwhile counts") {
  if (world().size() == 1) return;  // replicas that differ take two
  const TemporaryFolder folder;
  const auto run = [&](std::uint64_t audits, std::uint64_t stop_after) {
    TrainingOptions options = with(&TrainingOptions::epochs, 3);
    options.plan = folder / "plan.json";  // what the first chose by timing the others take over
    options.audit_every = audits;
    options.on_divergence = OnDivergence::rollback;
    if (audits > 0) options.faults = {parse_fault("flip@5:1")};
    Training training(options);
    std::uint64_t steps = 0;
    training.trainer.add({.step =
                              [&](const StepReport& report) {
                                steps = report.step;
                                if (steps == stop_after) training.trainer.stop();
                              },
                          .epoch = {},
                          .evaluation = {}});
    training.fit();
    return std::pair(steps, training.trainer.strategy().parameter_hash());
  };
  const auto expected = run(0, 0);
  REQUIRE(run(3, 0) == expected);  // audits after steps 3, 6 and 9, each an epoch's last
  REQUIRE(run(2, 0) == expected);
  REQUIRE(run(3, 5).first == 6);
}

}  // namespace trainer_test
