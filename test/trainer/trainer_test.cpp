// What a training does with odd options, and what its hooks may count on.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/io/safetensors.hpp>
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

TEST_CASE("a training does not write over a file that the program has read its data from") {
  const TemporaryFolder folder;
  const std::string name = folder / "table.csv";
  const std::string table = "a,y\n1,2\n";
  write_file(name, table);
  static_cast<void>(read_csv(name));
  for (const auto member : {&TrainingOptions::save, &TrainingOptions::summary_json, &TrainingOptions::metrics,
                            &TrainingOptions::predictions, &TrainingOptions::plan, &TrainingOptions::checkpoint_dir,
                            &TrainingOptions::tensorboard})
    require_mentions(message_of<InputError>([&] { Training(with(member, std::filesystem::path(name))).fit(); }),
                     {"would overwrite an input", "table.csv"});
  REQUIRE(read_file(name) == table);
}

TEST_CASE("a result that cannot be written takes no other with it") {
  const TemporaryFolder folder;
  TrainingOptions options;
  options.steps = 1;
  options.save = folder / "model";
  options.summary_json = "/dev/full";
  options.predictions = "/dev/full";
  Training training(options);
  const std::string text = message_of<ResourceError>([&] { training.fit(); });
  require_mentions(text, {"the training is done, but cannot write /dev/full: No space", "; cannot write /dev/full"});
  if (world().rank() == 0) REQUIRE(std::filesystem::file_size(options.save) > 0);
}

TEST_CASE("texts that are not UTF-8 are refused before the first step") {
  bool trained = false;
  const auto fit = [&](const TrainingOptions& options) {
    Training training(options);
    training.trainer.add({.step = [&](const StepReport&) { trained = true; }, .epoch = {}, .evaluation = {}});
    training.fit();
  };
  const std::string latin = "Ren\xe9";
  require_mentions(message_of<InputError>([&] { fit(with(&TrainingOptions::variant, latin)); }),
                   {".variant", "Ren?", "not UTF-8"});
  TrainingOptions options;
  options.metadata = {{"author", latin}};
  require_mentions(message_of<InputError>([&] { fit(options); }), {".metadata: author", "Ren?", "not UTF-8"});
  options.metadata = {{latin, "author"}};
  require_mentions(message_of<InputError>([&] { fit(options); }), {".metadata: the name Ren?", "not UTF-8"});
  REQUIRE_FALSE(trained);
}

namespace {

struct Values {
  std::vector<float> inputs;
  std::vector<std::int32_t> labels;

  explicit Values(std::size_t samples) : inputs(samples * 9), labels(samples) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<float>(i % 7);
    for (std::size_t n = 0; n < samples; ++n) labels[n] = static_cast<std::int32_t>(n % 4);
  }
  [[nodiscard]] MemoryDataset data() const { return {inputs, {9}, labels}; }
};

std::string message_of_fit(const Dataset& train, const Dataset& test, const TrainingOptions& options,
                           const Loss& loss = SoftmaxCrossEntropy()) {
  const Sequential model(Dense(9), ReLU(), Dense(4));
  Trainer trainer(world(), model, loss, Training::prepared(options));
  return message_of<Error>([&] { trainer.fit(train, test); });
}

class NoLoss final : public Loss {
 public:
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc&, Primitives&) const override { return nullptr; }
};

/// Has as many sums as this rank's number, and one more.
class UnequalSums final : public SummedMetric {
 public:
  [[nodiscard]] std::size_t sums(const Shape&) const override { return static_cast<std::size_t>(world().rank()) + 1; }
  void add(const Tensor&, const Tensor&, std::span<const float>, std::span<double>) const override {}
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double>) const override { return {{{"same"}, {1}}}; }
};

}  // namespace

TEST_CASE("an error in the data names the sample and its remedy, and does not blame the learning rate") {
  const Values good(48);
  const float no_number = std::nanf("");
  Values nan(48), infinite(48), ignored(48);
  nan.inputs[5 * 9 + 3] = ignored.inputs[5 * 9 + 3] = no_number;
  infinite.inputs[40 * 9] = std::numeric_limits<float>::infinity();
  require_mentions(message_of_fit(nan.data(), good.data(), {}),
                   {"not finite: sample 5 (its field 'input' has nan) of the training data", "mend that sample"});
  TrainingOptions pieces;
  pieces.accumulate = 3;
  require_mentions(message_of_fit(infinite.data(), good.data(), pieces), {"sample 40 (its field 'input' has inf)"});
  TrainingOptions split;
  split.validation_split = 0.25;
  Values all_nan(48);
  std::ranges::fill(all_nan.inputs, no_number);
  require_mentions(message_of_fit(all_nan.data(), good.data(), split), {"sample ", "mend that sample"});
}

TEST_CASE("a label that is no class is named with its sample, in training and in tests") {
  if (world().size() > 1) return;  // the rank that has the sample throws alone
  const Values good(48);
  Values bad(48);
  bad.labels[7] = 4;
  const std::string wrong = "a label of 4 among 4 classes: labels count from 0, so the largest is 3";
  require_mentions(message_of_fit(bad.data(), good.data(), {}),
                   {"sample 7 (its target is 4) of the training data: ", wrong});
  require_mentions(message_of_fit(good.data(), bad.data(), {}),
                   {"sample 7 (its target is 4) of the test data: ", wrong});
  TrainingOptions split;
  split.validation_split = 0.5;
  require_mentions(message_of_fit(bad.data(), good.data(), split), {"sample 7 (its target is 4) of the ", wrong});
}

TEST_CASE("initial parameters that are not finite, or are PyTorch's pickles, are named") {
  const TemporaryFolder folder;
  const Values good(48);
  TrainingOptions options;
  options.init = folder / "model";
  std::vector<NamedTensor> tensors{{"dense1.weight", Shape{9, 9}, std::vector<float>(81, 0.1F)},
                                   {"dense1.bias", Shape{9}, std::vector<float>(9)},
                                   {"dense2.weight", Shape{4, 9}, std::vector<float>(36, 0.1F)},
                                   {"dense2.bias", Shape{4}, std::vector<float>(4)}};
  tensors[2].values[7] = std::nanf("");
  write_safetensors(options.init, tensors);
  require_mentions(message_of_fit(good.data(), good.data(), options),
                   {"dense2.weight in .init = ", "not finite", "begin with other parameters"});
  for (const std::string magic : {"PK\3\4", "\x80\2}q"}) {
    write_file(options.init, magic + std::string(100, ' '));
    require_mentions(message_of_fit(good.data(), good.data(), options), {"torch.save", "safetensors.torch.save_file"});
  }
}

TEST_CASE("a loss without an operation, and metrics with unequal numbers of sums, are errors") {
  const Values good(48);
  require_mentions(message_of_fit(good.data(), good.data(), {}, NoLoss()), {"the loss's make returned no operation"});
  if (world().size() == 1) return;
  Training training({});
  training.trainer.add(UnequalSums());
  require_mentions(message_of<InputError>([&] { training.fit(); }), {"the metrics", "1 sums", "2 sums"});
}

TEST_CASE("a limit of memory suggests a strategy only where that fits") {
  const Values good(48);
  const auto fit = [&](std::size_t limit, const std::string& strategy) {
    TrainingOptions options;
    options.steps = 1;
    options.optimizer.name = "adam";
    options.strategy = strategy;
    options.memory_limit = limit;
    const Sequential model(Dense(30000), ReLU(), Dense(4));
    const SoftmaxCrossEntropy loss;
    Trainer trainer(world(), model, loss, Training::prepared(options));
    return message_of<Error>([&] { trainer.fit(good.data()); });
  };
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  const std::string nothing_fits = fit(mebibyte, "mirrored");
  require_mentions(nothing_fits, {"a rank needs ", "the limit is 1.0 MiB", "raise .memory_limit"});
  REQUIRE(nothing_fits.find(".strategy") == std::string::npos);
  const double needed =
      std::stod(nothing_fits.substr(nothing_fits.find("a rank needs ") + 13));  // MiB; Adam's states are 3.2
  const auto limit = static_cast<std::size_t>((needed - 0.8) * static_cast<double>(mebibyte));
  const std::string message = fit(limit, "mirrored");
  REQUIRE((message.find(", or take .strategy = sharded, where") != std::string::npos) == (world().size() > 1));
  if (world().size() > 1) REQUIRE(fit(limit, "sharded").empty());
}

}  // namespace trainer_test
