// What a training does with odd options, and what its hooks may count on.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/state.hpp>
#include <ronda/data/csv.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/runtime/io/safetensors.hpp>
#include <ronda/runtime/trainer/trainer.hpp>

#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"
#include "support/toy_data.hpp"
#include "support/wrapped_loss.hpp"

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

/// Toy images, some of weight 0.
class WeightedImages final : public Dataset {
 public:
  /// @param nothing  the samples of weight 0
  explicit WeightedImages(Range nothing) : nothing_(nothing) {}
  [[nodiscard]] std::size_t size() const override { return data_.size(); }
  [[nodiscard]] std::span<const Field> fields() const override { return data_.fields(); }
  void read(const SampleRequest& request, Batch& batch) const override {
    data_.read(request, batch);
    for (std::size_t row = 0; row < request.samples.size(); ++row)
      if (request.samples[row] >= nothing_.begin && request.samples[row] < nothing_.end)
        batch.weights().as<float>()[row] = 0;
  }

 private:
  Range nothing_;
  MemoryDataset data_ = toy_images(48, {9, 7, 1}, 4);
};

/// Collects warnings.
struct Heard final : EventSink {
  void on_warning(std::string_view text) override { warnings += std::string(text) + "\n"; }
  std::string warnings;
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

TEST_CASE("a learning rate of 0 moves nothing, and one that is not given is the optimizer's") {
  const TemporaryFolder folder;
  const auto values = [&](TrainingOptions options) {
    options.optimizer.name = "adam";
    options.plan =
        folder / "plan.json";  // what the first chose by timing, and so the layout of weights, the others have
    Training training(options);
    training.fit();
    const auto first = training.trainer.strategy().parameters()[0].value.as<const float>();
    return std::vector<float>(first.begin(), first.end());
  };
  TrainingOptions untrained;
  untrained.freeze = {"*"};
  const std::vector<float> usual = values({}), given = values(with(&TrainingOptions::learning_rate, 0.001)),
                           start = values(untrained), zero = values(with(&TrainingOptions::learning_rate, 0.0));
  CHECK(zero == start);
  CHECK(usual == given);
  CHECK(usual != start);
  TrainingOptions group = with(&TrainingOptions::learning_rate, 0.0);
  group.groups = {{.pattern = "*.bias", .learning_rate = 0.1}};
  require_mentions(message_of<InputError>([&] { check(group); }), {".learning_rate = 0", ".groups", ".freeze"});
}

TEST_CASE("a field without an effect beside the others is refused, by its name and theirs") {
  const auto refused = [](auto set, std::initializer_list<std::string_view> parts) {
    TrainingOptions options;
    options.optimizer.name = "sgd";
    check(options);
    set(options);
    require_mentions(message_of<InputError>([&] { check(options); }), parts);
  };
  refused([](auto& o) { o.optimizer.momentum = 0.9; },
          {".optimizer.momentum has no meaning for .optimizer.name = sgd", "it is for momentum"});
  refused([](auto& o) { o.strategy = ParameterServer{.servers = 2, .servers_beside = true}; },
          {".servers counts the last ranks", ".servers_beside"});
  refused([](auto& o) { o.gamma = 0.5; }, {".gamma has no meaning for .schedule = constant", "exponential"});
  refused([](auto& o) { o.reduce_rate_factor = 0.5; },
          {".reduce_rate_factor has no meaning without .reduce_rate_after"});
  refused([](auto& o) { o.prune_begin = 0.3; }, {".prune_begin has no meaning without .prune"});
  refused([](auto& o) { o.shares_every = 5; }, {".shares_every has no meaning for .shares = equal"});
  refused([](auto& o) { o.exact = true; }, {".exact has no meaning without .checkpoint_dir or .resume_from"});
  refused([](auto& o) { o.on_divergence = OnDivergence::rollback; }, {".on_divergence", "without .audit_every"});
}

TEST_CASE("a step without a sample that counts has no loss, and the last known one is the last loss") {
  WeightedImages data({16, 32});  // the samples of the second step have weight 0
  TrainingOptions options = with(&TrainingOptions::shuffle, false);
  Training training(options);
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
  training.trainer.add({.step = [&](const StepReport& report) { steps.push_back(report); },
                        .epoch = [&](const EpochReport& report) { epochs.push_back(report); }});
  training.trainer.fit(data);
  REQUIRE(steps.size() == 3);
  CHECK(std::isnan(steps[1].loss));
  CHECK(std::isnan(steps[1].metric));
  CHECK(std::isfinite(steps[0].loss));
  CHECK(std::isfinite(steps[2].loss));
  CHECK(epochs[0].train_loss == Approx((steps[0].loss + steps[2].loss) / 2));
}

TEST_CASE("a loss whose total weight is negative or no number ends the training") {
  for (const double odd : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const WrappedLoss loss([odd](const WrappedLoss::Run& run) {
      run();
      if (run.pass.mode == Mode::training) run.pass.control->weight = odd;
    });
    Training training({});
    Trainer trainer(world(), training.model, loss, Training::prepared({}));
    require_mentions(message_of<InputError>([&] { trainer.fit(training.data); }), {"total weight", "step 1"});
  }
}

TEST_CASE(
    "what a training cannot mean is a warning: a warm-up that it ends before, no parameter to train, images whose "
    "channels come first") {
  const auto warnings = [](const TrainingOptions& options, const MemoryDataset& data) {
    const Sequential model{Flatten(), Dense(4)};
    const SoftmaxCrossEntropy loss;
    Heard heard;
    Trainer(world(), model, loss, Training::prepared(options), &heard).fit(data);
    return world().rank() == 0 ? heard.warnings : std::string("rank 0 is told");
  };
  const bool told = world().rank() == 0;
  const MemoryDataset images = toy_images(48, {9, 7, 1}, 4);
  TrainingOptions usual = with(&TrainingOptions::warmup_epochs, 1.0);
  CHECK(warnings(usual, images).find("warm-up") == std::string::npos);
  const std::string warmup = warnings(with(&TrainingOptions::warmup_epochs, 2.0), images);
  TrainingOptions frozen;
  frozen.freeze = {"*"};
  const std::string untrained = warnings(frozen, images);
  const std::string turned = warnings({}, toy_images(48, {3, 9, 7}, 4));
  if (!told) return;
  require_mentions(warmup, {"warm-up of 6 steps", "training of 3", "50 %", ".warmup_epochs"});
  require_mentions(untrained, {"no parameter is trained", "dense1.weight", ".freeze"});
  require_mentions(turned, {"(3, 9, 7)", "3 rows of 7 channels", "transpose"});
}

TEST_CASE("a frozen batch norm holds its statistics, and normalises by them in training; a frozen weight does not") {
  const auto states = [](const std::vector<std::string>& freeze) {
    const Sequential model{Flatten(), Dense(6), BatchNorm(), ReLU(), Dense(4)};
    const SoftmaxCrossEntropy loss;
    const MemoryDataset data = toy_images(48, {9, 7, 1}, 4);
    TrainingOptions options;
    options.freeze = freeze;
    Trainer trainer(world(), model, loss, Training::prepared(options));
    trainer.fit(data);
    StateList all;
    trainer.strategy().state().visit_layer_states(all);
    std::vector<float> values;
    for (const State& state : all.states())
      if (state.tensor.dtype() == DType::float32)
        for (const float value : state.tensor.as<const float>()) values.push_back(value);
    return values;
  };
  const std::vector<float> start{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};
  for (const char* layer : {"batch_norm1", "batch_norm1.running_mean", "batch_norm*"}) CHECK(states({layer}) == start);
  for (const char* parameter : {"batch_norm1.weight", "*.bias", "dense1"}) CHECK(states({parameter}) != start);
}

TEST_CASE("a batch norm that would see one value a channel in training is refused") {
  const Sequential model{Flatten(), Dense(6), BatchNorm(), Dense(4)};
  const SoftmaxCrossEntropy loss;
  const MemoryDataset data = toy_images(48, {9, 7, 1}, 4);
  TrainingOptions options = Training::prepared({});
  options.global_batch_size = static_cast<std::size_t>(world().size());
  Trainer trainer(world(), model, loss, options);
  require_mentions(message_of<InputError>([&] { trainer.fit(data); }),
                   {"batch_norm1", "one value a channel", ".batch_size", "SyncBatchNorm"});
}

TEST_CASE("a batch norm is refused where some rank has one value a channel in each step") {
  const auto ranks = static_cast<std::size_t>(world().size());
  TrainingOptions options;
  options.global_batch_size = 2 * ranks - 1;
  const MemoryDataset data = toy_images(10 * options.global_batch_size, {9, 7, 1}, 4);
  const Sequential model{Flatten(), Dense(6), BatchNorm(), Dense(4)};
  const SoftmaxCrossEntropy loss;
  Trainer trainer(world(), model, loss, Training::prepared(options));
  require_mentions(message_of<InputError>([&] { trainer.fit(data); }), {"batch_norm1", "one value a channel"});
}

TEST_CASE("running values of ranks without samples do not count in the mean") {
  const auto ranks = static_cast<std::size_t>(world().size());
  TrainingOptions options;
  options.global_batch_size = std::max<std::size_t>(ranks - 1, 1);
  options.epochs = 1;
  const std::size_t steps = 5, samples = steps * options.global_batch_size;
  const MemoryDataset data(std::vector<float>(samples * 4, 10), Shape{2, 2, 1}, std::vector<std::int32_t>(samples));
  const Sequential model(BatchNorm(), Flatten(), Dense(2));
  const SoftmaxCrossEntropy loss;
  Trainer trainer(world(), model, loss, Training::prepared(options));
  trainer.fit(data);
  StateList states;
  trainer.strategy().state().visit_layer_states(states);
  for (const State& state : states.states())
    if (state.name.ends_with("running_mean"))
      CHECK(state.tensor.as<const float>()[0] == Approx(10 * (1 - std::pow(0.9, steps))));
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
    if (audits > 0) options.on_divergence = OnDivergence::rollback;
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

/// Has rank + 1 sums.
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
  if (world().size() > 1) return;  // only the rank that has the sample throws
  const Values good(48);
  Values bad(48);
  bad.labels[7] = 4;
  const std::string wrong = "a label of 4 among 4 classes: labels count from 0, so the largest is 3";
  require_mentions(message_of_fit(bad.data(), good.data(), {}),
                   {"sample 7 (its target is 4) of the training data: ", wrong});
  MemoryDataset tests = bad.data();
  tests.set_origin("labels.csv");
  require_mentions(message_of_fit(good.data(), tests, {}),
                   {"sample 7 (its target is 4, from labels.csv) of the test data: ", wrong});
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
  const TemporaryFolder folder;
  const auto fit = [&](std::size_t limit, const std::string& strategy) {
    TrainingOptions options;
    options.steps = 1;
    options.optimizer.name = "adam";
    options.strategy = strategy;
    options.memory_limit = limit;
    options.plan = folder / "plan.json";  // the others have the first one's choices by timing, and so its memory
    const Sequential model(Dense(30000), ReLU(), Dense(4));
    const SoftmaxCrossEntropy loss;
    Trainer trainer(world(), model, loss, Training::prepared(options));
    return message_of<Error>([&] { trainer.fit(good.data()); });
  };
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  REQUIRE(fit(0, "mirrored").empty());
  const std::string nothing_fits = fit(mebibyte, "mirrored");
  require_mentions(nothing_fits, {"a rank needs ", "the limit is 1.0 MiB", "raise .memory_limit"});
  REQUIRE(nothing_fits.find(".strategy") == std::string::npos);
  const double needed =
      std::stod(nothing_fits.substr(nothing_fits.find("a rank needs ") + 13));  // MiB; Adam's states are 3.2
  const auto limit = static_cast<std::size_t>((needed - 0.8) * static_cast<double>(mebibyte));
  const std::string message = fit(limit, "mirrored");
  CAPTURE(message, limit);
  REQUIRE((message.find(", or take .strategy = sharded, where") != std::string::npos) == (world().size() > 1));
  if (world().size() > 1) REQUIRE(fit(limit, "sharded").empty());
}

}  // namespace trainer_test
