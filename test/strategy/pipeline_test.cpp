// A model that is computed in stages does what a whole one does, by ranks that have a part of it each.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "strategy/named_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/layers/primitives.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

using namespace ronda;
using namespace ronda::test;

namespace pipeline_test {
namespace {

/// What a rank's dense layers were asked for, in this order, each with the number of its micro-batch: forward (F), the
/// halves of backward (B and W), or both at once.
struct Calls {
  std::string text;
  std::size_t forwards = 0, inputs = 0, parameters = 0;

  void note(char what, std::size_t& count) { text += (text.empty() ? "" : " ") + (what + std::to_string(count++)); }
};

class HeardOperation final : public Operation {
 public:
  HeardOperation(std::unique_ptr<Operation> operation, Calls& calls) : operation_(std::move(operation)), calls_(calls) {
    plan_ = operation_->plan();
  }
  void bind(const OperationMemory& memory) override { operation_->bind(memory); }
  void forward(Inputs inputs, const Pass& pass) override {
    calls_.note('F', calls_.forwards);
    operation_->forward(inputs, pass);
  }
  void backward(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    calls_.note('B', calls_.inputs);
    calls_.note('W', calls_.parameters);
    operation_->backward(inputs, output_gradient, pass);
  }
  void backward_inputs(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    calls_.note('B', calls_.inputs);
    operation_->backward_inputs(inputs, output_gradient, pass);
  }
  void backward_parameters(Inputs inputs, const Tensor& output_gradient, const Pass& pass) override {
    calls_.note('W', calls_.parameters);
    operation_->backward_parameters(inputs, output_gradient, pass);
  }

 private:
  std::unique_ptr<Operation> operation_;
  Calls& calls_;
};

/// Plain loops, of which dense layers are heard.
class HeardPrimitives final : public Primitives {
 public:
  explicit HeardPrimitives(Calls& calls) : calls_(calls) {}
  [[nodiscard]] std::string name() const override { return loops_->name() + ", heard"; }
  std::unique_ptr<Operation> make(const OperationSpec& operation, std::span<const TensorDesc> inputs,
                                  const OperationContext& context) override {
    auto made = loops_->make(operation, inputs, context);
    if (!std::holds_alternative<DenseSpec>(operation)) return made;
    return std::make_unique<HeardOperation>(std::move(made), calls_);
  }

 private:
  Calls& calls_;
  std::unique_ptr<Primitives> loops_ = make_reference_primitives();
};

struct PipelineSet {
  std::size_t stages = 0;
  std::vector<std::string> cuts = {};
  std::size_t global_batch = 50, micro_batches = 4;
  std::string optimizer = "momentum";
  double clip_norm = 0;
  bool check_gradients = false;
  bool library = false;
  Picks picks = {};
  std::function<ParameterGroup(std::string_view)> group_of = {};
  double ema_decay = 0;
  Compression compression = Compression::none;
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::automatic;
  Calls* calls = nullptr;  ///< where dense layers are heard

  [[nodiscard]] Pipeline pipeline() const { return {stages, cuts}; }
};

NamedRun run_of(const Communicator& communicator, const char* name, Sequential model, const Dataset& data,
                const PipelineSet& set) {
  return {{communicator, name, set.pipeline().shard(this_rank(), rank_count()), set.global_batch, set.micro_batches,
           set.optimizer},
          std::move(model),
          data,
          [&](MirroredOptions& options) {
            if (std::string_view(name) == Pipeline::name) options.strategy = set.pipeline();
            options.clip_norm = set.clip_norm;
            options.check_gradients = set.check_gradients;
            options.picks = set.picks;
            options.group_of = set.group_of;
            options.ema_decay = set.ema_decay;
            options.fusion.compression = set.compression;
            options.fusion.algorithm = set.algorithm;
            options.fusion.first_bucket_bytes = 1024;
            options.fusion.bucket_bytes = 4096;
            options.platform.primitives = set.library ? make_onednn_primitives(1) : make_reference_primitives();
            if (set.calls != nullptr) options.platform.primitives = std::make_shared<HeardPrimitives>(*set.calls);
          }};
}

NamedRun pipelined(Sequential model, const Dataset& data, const PipelineSet& set) {
  return run_of(everybody(), "pipeline", std::move(model), data, set);
}

/// Whole models, one for each pipeline: a rank is in the group of those with its stage.
NamedRun whole(Sequential model, const Dataset& data, PipelineSet set) {
  const auto stage = static_cast<int>(this_rank() % set.pipeline().stages_on(rank_count()));
  set.picks = {};
  return run_of(world().communicator().split(stage, world().rank()), "mirrored", std::move(model), data, set);
}

/// The third has fewer samples.
const std::size_t some_steps = sanitized ? 3 : 5;

/// Losses, norms, parameters and states after some steps.
void check_equal_steps(Sequential (*model)(), const Dataset& data, const PipelineSet& set,
                       std::size_t steps = some_steps, double tolerance = 1e-5) {
  NamedRun parts = pipelined(model(), data, set), all = whole(model(), data, set);
  compare_steps(parts, all, steps, tolerance);
}

Sequential perceptron() {
  return Sequential(Flatten(), Dense(33), ReLU(), Dense(21), ReLU(), Dense(13), ReLU(), Dense(4));
}
Sequential block() { return Sequential(Conv2d(8, 3, 1, 1), BatchNorm(), ReLU(), Conv2d(8, 3, 1, 1), BatchNorm()); }
Sequential residual_network() {
  return Sequential(Conv2d(8, 3, 1, 1), BatchNorm(), ReLU(), Residual(block()), ReLU(), Residual(block()), ReLU(),
                    Flatten(), Dense(4));
}
Sequential synchronised_network() {
  return Sequential(Conv2d(8, 3), SyncBatchNorm(), ReLU(), Conv2d(8, 3), SyncBatchNorm(), ReLU(), Flatten(), Dense(4));
}
Sequential with_dropout() {
  return Sequential(Flatten(), Dense(33), ReLU(), Dropout(0.3), Dense(21), ReLU(), Dense(4));
}

MemoryDataset images() { return toy_images(131, {12, 12, 1}, 4); }
MemoryDataset small_images() { return toy_images(131, {6, 6, 1}, 4); }  // for plain loops of many convolutions

/// All ways in which these ranks are pipelines.
std::vector<std::size_t> stage_counts() {
  std::vector<std::size_t> counts;
  for (std::size_t stages = 2; stages <= rank_count(); ++stages)
    if (rank_count() % stages == 0) counts.push_back(stages);
  return counts;
}

/// The perceptron's stages, cut by hand: measuring where takes as long as some steps.
std::vector<std::string> cut_in(std::size_t stages) {
  std::vector<std::string> cuts{"dense2", "dense3", "dense4"};
  cuts.resize(stages - 1);
  return cuts;
}

std::string refused(const PipelineSet& set, Sequential model = perceptron(),
                    const std::function<void(MirroredOptions&)>& change = {}) {
  const MemoryDataset data = images();
  const BatchPlan plan(data.size(), 50, {}, set.micro_batches);
  SoftmaxCrossEntropy loss;
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.strategy = set.pipeline();
  options.platform.primitives = make_reference_primitives();
  if (change) change(options);
  return message_of<InputError>([&] {
    PipelineStrategy(everybody(), model, loss, make_optimizer({.name = "sgd"}), Schedule({.learning_rate = 0.05}),
                     options);
  });
}

}  // namespace

TEST_CASE(
    "a hundred steps of a pipeline of all ranks, and some of others, have the losses of a whole model, cut by measured "
    "times") {
  for (const std::size_t stages : stage_counts())
    for (const std::size_t micro_batches : {1, 2, 5}) {
      INFO(stages << " stages, " << micro_batches << " micro-batches");
      PipelineSet set{.stages = stages};
      set.micro_batches = micro_batches;
      const bool long_one = micro_batches == 2 && stages == rank_count() && !sanitized;
      check_equal_steps(perceptron, images(), set, long_one ? 100 : 2 * some_steps);
    }
}

TEST_CASE("so has a convolutional network, by plain loops and in the library's layouts") {
  for (const std::size_t stages : stage_counts())
    for (const bool library : {false, true}) {
      if (stages > 3) continue;  // it has three parts with parameters
      INFO(stages << " stages, " << library);
      check_equal_steps(cnn, images(), {.stages = stages, .library = library});
    }
}

TEST_CASE("so has a residual network with batch norms, of which each micro-batch is one") {
  for (const std::size_t stages : stage_counts()) {
    INFO(stages << " stages");
    check_equal_steps(residual_network, small_images(), {.stages = stages}, some_steps, 1e-4);
  }
}

TEST_CASE("a residual block is cut within, too") {
  const auto check = [](const std::vector<std::string>& cuts) {
    check_equal_steps(residual_network, small_images(), {.cuts = cuts}, 3, 1e-4);
  };
  if (rank_count() == 2) check({"conv3"});
  if (rank_count() == 3) check({"conv3", "batch_norm3"});  // the block's input goes through the middle stage
  if (rank_count() == 4) check({"conv3", "batch_norm3", "conv5"});
}

TEST_CASE("stages compute in the order that the page of strategies shows") {
  if (rank_count() != 3) return;
  Calls calls;
  const MemoryDataset data = images();
  NamedRun run = pipelined(Sequential(Flatten(), Dense(9), ReLU(), Dense(7), ReLU(), Dense(4)), data,
                           {.cuts = {"dense2", "dense3"}, .micro_batches = 5, .calls = &calls});
  const std::vector<std::string> shown{"F0 F1 F2 B0 W0 F3 B1 W1 F4 B2 W2 B3 W3 B4 W4",
                                       "F0 F1 B0 F2 B1 W0 F3 B2 W1 F4 B3 W2 B4 W3 W4",
                                       "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 W3 W4"};
  for (int step = 0; step < 2; ++step) {
    calls = {};
    run.step();
    CHECK(calls.text == shown[this_rank()]);
  }
}

TEST_CASE("cuts are made where they are asked for") {
  if (rank_count() < 2) return;
  const MemoryDataset data = images();
  for (const char* name : {"dense2", "relu2", "dense3"}) {
    if (rank_count() % 2 != 0) continue;
    INFO(name);
    PipelineSet set{.cuts = {name}};
    check_equal_steps(perceptron, data, set, 4);
    NamedRun run = pipelined(perceptron(), data, set);
    CHECK(run.strategy->stages().at(1).begins == name);
    CHECK(run.strategy->stages().at(1).predicted_bubble == Approx(1.0 / 13));  // of 4 micro-batches
  }
  if (rank_count() == 3) check_equal_steps(perceptron, data, {.cuts = {"dense2", "dense4"}}, 4);
}

TEST_CASE("norms, checks, groups and rates are those of the whole model") {
  for (const std::size_t stages : stage_counts())
    for (const char* optimizer : {"adam", "lars", "lamb", "muon"}) {
      INFO(stages << " stages, " << optimizer);
      PipelineSet set{.cuts = cut_in(stages), .optimizer = optimizer};
      set.clip_norm = 0.05;
      set.group_of = [](std::string_view name) {
        return ParameterGroup{.rate_factor = name.ends_with(".bias") ? 0.5 : 1, .frozen = name == "dense2.weight"};
      };
      check_equal_steps(perceptron, images(), set, some_steps, 1e-4);
      set.clip_norm = 0;
      set.check_gradients = true;
      check_equal_steps(perceptron, images(), set, 3, 1e-4);  // the third batch is a short one
    }
}

TEST_CASE("dropout draws for a sample what it draws in a whole model") {
  for (const std::size_t stages : stage_counts())
    if (stages <= 3) check_equal_steps(with_dropout, images(), {.cuts = cut_in(stages)});
}

TEST_CASE("pipelines that share a step add up over them where layers do") {
  if (rank_count() == 4) check_equal_steps(synchronised_network, images(), {.stages = 2}, some_steps, 1e-4);
}

TEST_CASE("pipelines that compress what they sum train as mirrored replicas that do") {
  if (rank_count() != 4) return;
  const MemoryDataset data = images();
  /// By how much four steps change the parameters. A ring sends, also within a node, and so compresses.
  const auto changes = [&](bool in_stages, Compression compression) {
    const PipelineSet set{
        .cuts = {"dense3"}, .optimizer = "sgd", .compression = compression, .algorithm = AllreduceAlgorithm::ring};
    NamedRun run = in_stages ? pipelined(perceptron(), data, set) : whole(perceptron(), data, set);
    const std::vector<float> before = run.parameters();
    for (int k = 0; k < 4; ++k) run.step();
    std::vector<float> after = run.parameters();
    std::ranges::transform(after, before, after.begin(), std::minus());
    return after;
  };
  const auto parts = changes(true, Compression::int8);
  // Blocks and draws of the rounding are others; it takes at most 1/126 of the largest number in a block, each time
  // that this is sent. Distances were 0.01.
  CHECK(relative_distance(parts, changes(false, Compression::int8)) < 0.05);
  const double lost = relative_distance(parts, changes(true, Compression::none));
  CHECK((lost > 0.001 && lost < 0.05));
}

TEST_CASE("an evaluation goes through the pipeline, and the last stage sees the outputs") {
  for (const std::size_t stages : stage_counts()) {
    INFO(stages << " stages");
    const MemoryDataset data = small_images(), test = toy_images(57, {6, 6, 1}, 4, 2);
    const PipelineSet set{.stages = stages};
    NamedRun parts = pipelined(residual_network(), data, set), all = whole(residual_network(), data, set);
    for (int k = 0; k < 3; ++k) {
      parts.step();
      all.step();
    }
    const TopKAccuracy top2(2);
    const auto evaluated = [&](NamedRun& run, double& seen) {
      BatchLoader loader(
          test, SampleOrder(test.size(), 0, false),
          BatchPlan(test.size(), run.plan.capacity() * run.strategy->shard().count, run.strategy->shard())
              .with_capacity(run.plan.capacity()));
      return run.strategy->evaluate(
          loader, [&](const Batch& batch, const Tensor&) { seen += static_cast<double>(batch.real()); }, {&top2});
    };
    BatchLoader larger(
        test, SampleOrder(test.size(), 0, false),
        BatchPlan(test.size(), (parts.plan.capacity() + 1) * parts.strategy->shard().count, parts.strategy->shard()));
    CHECK_THROWS_AS(parts.strategy->evaluate(larger), InputError);  // and leaves no message behind
    double seen = 0, expected_seen = 0;
    const Evaluation mine = evaluated(parts, seen), expected = evaluated(all, expected_seen);
    CHECK(mine.loss == Approx(expected.loss).epsilon(1e-4));
    CHECK(mine.metric == Approx(expected.metric));
    REQUIRE(mine.metrics.size() == 1);
    CHECK(mine.metrics[0].number() == Approx(expected.metrics[0].number()));
    Communicator everyone = everybody();
    everyone.allreduce(Tensor(std::span(&seen, 1)));
    CHECK(seen == 57);
    const StepResult a = all.step(), b = parts.step();  // and training goes on
    CHECK(b.loss == Approx(a.loss).epsilon(1e-4));
  }
}

TEST_CASE(
    "an average of the parameters is kept, evaluated and shown whole; pruned weights are counted over all stages") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    PipelineSet set{.cuts = cut_in(stages), .ema_decay = 0.7};
    set.group_of = [](std::string_view name) { return ParameterGroup{.pruned = name.ends_with(".weight")}; };
    NamedRun parts = pipelined(perceptron(), data, set), all = whole(perceptron(), data, set);
    for (int k = 0; k < 6; ++k) {
      for (NamedRun* run : {&parts, &all})
        if (k == 3) run->strategy->state().prune(0.5);
      parts.step();
      all.step();
    }
    const auto averages = [](NamedRun& run) {
      std::vector<float> numbers;
      run.strategy->state().average_states();
      run.strategy->state().with_average([&] {
        for (const auto& p : run.strategy->parameters()) {
          const auto values = to_file(p, p.trained());
          numbers.insert(numbers.end(), values.begin(), values.end());
        }
      });
      return numbers;
    };
    CHECK(relative_distance(averages(parts), averages(all)) < 1e-5);
    CHECK(relative_distance(parts.parameters(), all.parameters()) < 1e-5);
    CHECK(relative_distance(averages(parts), parts.parameters()) > 1e-4);
    const Numbers shown = shown_by(*parts.strategy), expected = shown_by(*all.strategy);
    for (const auto& [name, numbers] : shown)
      if (name.ends_with(".ema")) CHECK(relative_distance(numbers, expected.at(name)) < 1e-4);
    CHECK(shown.contains("dense1.weight.ema"));
    const auto found = parts.strategy->state().zeros(), wanted = all.strategy->state().zeros();
    CHECK(found.weights == wanted.weights);
    CHECK(found.zeros == wanted.zeros);
    CHECK(found.zeros > 0);
  }
}

TEST_CASE("a rank keeps the optimizer's states of its stage, and all ranks together save each once") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    const PipelineSet set{.cuts = cut_in(stages), .optimizer = "adam"};
    NamedRun parts = pipelined(perceptron(), data, set), all = whole(perceptron(), data, set);
    for (int k = 0; k < 5; ++k) {
      parts.step();
      all.step();
    }
    CHECK(parts.strategy->memory().optimizer < all.strategy->memory().optimizer);
    CHECK(parts.strategy->memory().gradients < all.strategy->memory().gradients);
    parts.strategy->state().gather_state();
    const Numbers expected = shown_by(*all.strategy), shown = shown_by(*parts.strategy);
    std::int64_t saved = 0;
    for (const State& state : parts.strategy->state().divided().whole()) {
      INFO(state.name);
      REQUIRE(expected.contains(state.name));
      CHECK(relative_distance(to_file(state), expected.at(state.name)) < 1e-3);
      ++saved;
    }
    Communicator everyone = everybody();
    everyone.allreduce(Tensor(std::span(&saved, 1)));
    CHECK(shown.size() + static_cast<std::size_t>(saved) == expected.size());
    CHECK(parts.strategy->state().divided().pieces().size() == static_cast<std::size_t>(saved));
  }
}

TEST_CASE("a stage holds the activations of as many micro-batches as there are stages, however many a step has") {
  for (const std::size_t stages : stage_counts()) {
    INFO(stages << " stages");
    const MemoryDataset data = images();
    const std::size_t rows = 4, pipelines = rank_count() / stages;
    const std::vector<std::string> cuts = cut_in(stages);
    const auto activations = [&](std::size_t micro_batches) {
      const NamedRun run =
          pipelined(perceptron(), data,
                    {.cuts = cuts, .global_batch = rows * micro_batches * pipelines, .micro_batches = micro_batches});
      REQUIRE(run.plan.capacity() == rows);
      return run.strategy->memory().activations;
    };
    const std::size_t held = activations(stages);
    CHECK(activations(3 * stages) == held);
    for (std::size_t fewer = 1; fewer < stages; ++fewer) {
      INFO(fewer << " micro-batches");
      CHECK(activations(fewer) < held);
    }
  }
}

TEST_CASE("a number that is none is found in whatever stage, and no rank updates") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    const PipelineSet set{.cuts = cut_in(stages), .check_gradients = true};
    NamedRun run = pipelined(perceptron(), data, set);
    run.step();
    const std::vector<float> before = run.parameters();
    Batch spoiled(data.fields(), run.plan.capacity());
    for (std::size_t micro = 0; micro < 3; ++micro) run.strategy->accumulate(run.loader.next());
    spoiled.copy_from(run.loader.next());
    *spoiled.input().pointer<float>() = std::nanf("");
    const StepResult result = run.strategy->train_step(spoiled);
    CHECK(result.nonfinite);
    CHECK(run.parameters() == before);
    require_mentions(run.strategy->explain_nonfinite(spoiled), {"the loss", "the gradient of dense"});
    CHECK_FALSE(run.step().nonfinite);
  }
}

TEST_CASE("flags of all ranks reach all ranks") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    NamedRun run = pipelined(perceptron(), data, {.cuts = cut_in(stages)});
    StepFlags flags;
    flags.written = 1;
    if (this_rank() == 0) flags.stop = 1;
    run.strategy->raise(flags);
    const StepResult result = run.step();
    CHECK(result.stop);
    CHECK(result.flags.written == static_cast<double>(rank_count()));
  }
}

TEST_CASE("waiting is predicted: second halves of backward fill waits, as far as there are some") {
  CHECK(predicted_bubble(2, 8) == Approx(1.0 / 25));
  CHECK(predicted_bubble(4, 16) == Approx(3.0 / 51));
  CHECK(predicted_bubble(2, 1) == Approx(2.0 / 5));
  CHECK(predicted_bubble(4, 3) == Approx(4.0 / 13));
}

TEST_CASE("a pipeline keeps its number of micro-batches") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    NamedRun run = pipelined(perceptron(), data, {.cuts = cut_in(stages)});
    run.strategy->set_micro_batches(4);  // as before
    for (const std::size_t count : {3, 5})
      require_mentions(message_of<InputError>([&] { run.strategy->set_micro_batches(count); }),
                       {"the same micro-batches", ".shares = equal"});
    CHECK_FALSE(run.step().nonfinite);
  }
}

TEST_CASE("what a pipeline is not for is refused, with the remedy") {
  if (rank_count() == 1) {
    require_mentions(refused({}), {"two stages or more", "mirrored"});
    require_mentions(refused({.stages = 2}), {"1 rank cannot be pipelines of 2 stages"});
    return;
  }
  require_mentions(refused({.stages = rank_count() + 1}), {"cannot be pipelines", "multiple of"});
  require_mentions(refused({.stages = 1}), {"two stages or more"});
  require_mentions(refused({.stages = rank_count(), .cuts = std::vector<std::string>(rank_count(), "dense2")}),
                   {".cuts", ".stages"});
  std::vector<std::string> cuts(rank_count() - 1, "dense2");
  cuts.front() = "dense9";
  require_mentions(refused({.cuts = cuts}), {"'dense9'", "no such operation", "dense2, dense3 or dense4"});
  cuts.front() = "flatten1";
  require_mentions(refused({.cuts = cuts}), {"'flatten1'", "the first stage begins"});
  if (rank_count() > 2)
    require_mentions(refused({.cuts = std::vector<std::string>(rank_count() - 1, "dense2")}), {"different"});
  if (rank_count() > 2)
    require_mentions(refused({}, Sequential(Flatten(), Dense(9), Dense(4))), {"into 2 stages", "at most"});
  require_mentions(
      refused({}, perceptron(),
              [](MirroredOptions& o) { o.platform.primitives = make_rounded_primitives(DType::bfloat16); }),
      {"float32"});
  require_mentions(refused({}, perceptron(), [](MirroredOptions& o) { o.memory_limit = 1000; }), {"memory_limit"});
  require_mentions(refused({}, perceptron(), [](MirroredOptions& o) { o.strategy = Sharded(); }),
                   {".strategy = sharded", "pipeline"});
}

}  // namespace pipeline_test
