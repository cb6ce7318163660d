// A model that is computed in stages does what a whole one does, by ranks that have a part of it each.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
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
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

using namespace ronda;
using namespace ronda::test;

namespace {

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

  [[nodiscard]] PipelineOptions pipeline() const { return {stages, cuts}; }
};

std::size_t ranks() { return static_cast<std::size_t>(world().size()); }
std::size_t rank() { return static_cast<std::size_t>(world().rank()); }

/// A strategy of this name, with its data.
struct StagedRun {
  StagedRun(const Communicator& communicator, const char* name, Shard shard, Sequential m, const Dataset& data,
            const PipelineSet& set)
      : model(std::move(m)),
        plan(data.size(), set.global_batch, shard, set.micro_batches),
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(strategy_row(name).make({.communicator = communicator,
                                          .model = model,
                                          .loss = loss,
                                          .optimizer = make_optimizer({.name = set.optimizer}),
                                          .schedule = Schedule({.learning_rate = 0.05}),
                                          .options = options(data, set)})) {}

  MirroredOptions options(const Dataset& data, const PipelineSet& set) const {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.pipeline = set.pipeline();
    o.clip_norm = set.clip_norm;
    o.check_gradients = set.check_gradients;
    o.picks = set.picks;
    o.group_of = set.group_of;
    o.ema_decay = set.ema_decay;
    o.fusion.compression = set.compression;
    o.fusion.algorithm = set.algorithm;
    o.fusion.first_bucket_bytes = 1024;
    o.fusion.bucket_bytes = 4096;
    o.platform.primitives = set.library ? make_onednn_primitives(1) : make_reference_primitives();
    return o;
  }
  StepResult step() {
    for (std::size_t micro = 1; micro < plan.micro_batches(); ++micro) strategy->accumulate(loader.next());
    return strategy->train_step(loader.next());
  }
  std::vector<float> parameters() {
    strategy->state().gather_state();
    std::vector<float> all;
    for (const auto& p : strategy->parameters()) {
      const auto values = to_file(p, p.trained());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  std::unique_ptr<Strategy> strategy;
};

StagedRun pipelined(Sequential model, const Dataset& data, const PipelineSet& set) {
  return {everybody(), "pipeline", set.pipeline().shard(rank(), ranks()), std::move(model), data, set};
}

/// Whole models, one for each pipeline: a rank is in the group of those with its stage.
StagedRun whole(Sequential model, const Dataset& data, PipelineSet set) {
  const Shard shard = set.pipeline().shard(rank(), ranks());
  const auto stage = static_cast<int>(rank() % set.pipeline().stages_on(ranks()));
  set.picks = {};
  return {world().communicator().split(stage, world().rank()), "mirrored", shard, std::move(model), data, set};
}

/// The third has fewer samples.
constexpr std::size_t some_steps = sanitized ? 3 : 5;

/// Losses, norms, parameters and states after some steps.
void check_equal_steps(Sequential (*model)(), const Dataset& data, const PipelineSet& set,
                       std::size_t steps = some_steps, double tolerance = 1e-5) {
  StagedRun parts = pipelined(model(), data, set), all = whole(model(), data, set);
  CHECK(parts.parameters() == all.parameters());
  for (std::size_t k = 0; k < steps; ++k) {
    const StepResult a = all.step(), b = parts.step();
    CHECK(std::abs(b.loss - a.loss) <= tolerance * std::max(1.0, a.loss));
    CHECK(b.weight == a.weight);
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(1e-3));
    CHECK_FALSE(b.nonfinite);
  }
  CHECK(relative_distance(parts.parameters(), all.parameters()) < 10 * tolerance);
  parts.strategy->state().average_states();
  all.strategy->state().average_states();
  const Numbers mine = layer_states_of(*parts.strategy), expected = layer_states_of(*all.strategy);
  REQUIRE(mine.size() == expected.size());
  for (const auto& [name, numbers] : mine) {
    INFO(name);
    CHECK(relative_distance(numbers, expected.at(name)) < 1e-3);
  }
  CHECK_FALSE(parts.strategy->parameter_hash().empty());
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

/// All ways in which these ranks are pipelines.
std::vector<std::size_t> stage_counts() {
  std::vector<std::size_t> counts;
  for (std::size_t stages = 2; stages <= ranks(); ++stages)
    if (ranks() % stages == 0) counts.push_back(stages);
  return counts;
}

std::string refused(const PipelineSet& set, Sequential model = perceptron(),
                    const std::function<void(MirroredOptions&)>& change = {}) {
  const MemoryDataset data = images();
  const BatchPlan plan(data.size(), 50, {}, set.micro_batches);
  SoftmaxCrossEntropy loss;
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.pipeline = set.pipeline();
  options.platform.primitives = make_reference_primitives();
  if (change) change(options);
  return message_of<InputError>([&] {
    PipelineStrategy(everybody(), model, loss, make_optimizer({.name = "sgd"}), Schedule({.learning_rate = 0.05}),
                     options);
  });
}

}  // namespace

TEST_CASE("a hundred steps of a pipeline have the losses of a whole model, cut by measured times") {
  for (const std::size_t stages : stage_counts())
    for (const std::size_t micro_batches : {1, 2, 5}) {
      INFO(stages << " stages, " << micro_batches << " micro-batches");
      PipelineSet set{.stages = stages};
      set.micro_batches = micro_batches;
      check_equal_steps(perceptron, images(), set, micro_batches == 2 && !sanitized ? 100 : 2 * some_steps);
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
    check_equal_steps(residual_network, images(), {.stages = stages}, some_steps, 1e-4);
  }
}

TEST_CASE("cuts are made where they are asked for") {
  if (ranks() < 2) return;
  const MemoryDataset data = images();
  for (const char* name : {"dense2", "relu2", "dense3"}) {
    if (ranks() % 2 != 0) continue;
    INFO(name);
    PipelineSet set{.cuts = {name}};
    check_equal_steps(perceptron, data, set, 4);
    StagedRun run = pipelined(perceptron(), data, set);
    CHECK(run.strategy->stages().at(1).begins == name);
  }
  if (ranks() == 3) check_equal_steps(perceptron, data, {.cuts = {"dense2", "dense4"}}, 4);
}

TEST_CASE("norms, checks, groups and rates are those of the whole model") {
  for (const std::size_t stages : stage_counts())
    for (const char* optimizer : {"adam", "lars", "lamb", "muon"}) {
      INFO(stages << " stages, " << optimizer);
      PipelineSet set{.stages = stages, .optimizer = optimizer};
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
    if (stages <= 3) check_equal_steps(with_dropout, images(), {.stages = stages});
}

TEST_CASE("pipelines that share a step add up over them where layers do") {
  if (ranks() == 4) check_equal_steps(synchronised_network, images(), {.stages = 2}, some_steps, 1e-4);
}

TEST_CASE("pipelines that compress what they sum train as mirrored replicas that do") {
  if (ranks() != 4) return;
  const MemoryDataset data = images();
  /// By how much four steps change the parameters. A ring sends, also within a node, and so compresses.
  const auto changes = [&](bool in_stages, Compression compression) {
    const PipelineSet set{
        .cuts = {"dense3"}, .optimizer = "sgd", .compression = compression, .algorithm = AllreduceAlgorithm::ring};
    StagedRun run = in_stages ? pipelined(perceptron(), data, set) : whole(perceptron(), data, set);
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
    const MemoryDataset data = images(), test = toy_images(57, {12, 12, 1}, 4, 2);
    const PipelineSet set{.stages = stages};
    StagedRun parts = pipelined(residual_network(), data, set), all = whole(residual_network(), data, set);
    for (int k = 0; k < 3; ++k) {
      parts.step();
      all.step();
    }
    const TopKAccuracy top2(2);
    const auto evaluated = [&](StagedRun& run, double& seen) {
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
    PipelineSet set{.stages = stages, .ema_decay = 0.7};
    set.group_of = [](std::string_view name) { return ParameterGroup{.pruned = name.ends_with(".weight")}; };
    StagedRun parts = pipelined(perceptron(), data, set), all = whole(perceptron(), data, set);
    for (int k = 0; k < 6; ++k) {
      for (StagedRun* run : {&parts, &all})
        if (k == 3) run->strategy->state().prune(0.5);
      parts.step();
      all.step();
    }
    const auto averages = [](StagedRun& run) {
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
    const PipelineSet set{.stages = stages, .optimizer = "adam"};
    StagedRun parts = pipelined(perceptron(), data, set), all = whole(perceptron(), data, set);
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

TEST_CASE("a stage holds the activations of w + 1 micro-batches, however many a step has") {
  for (const std::size_t stages : stage_counts()) {
    INFO(stages << " stages");
    const MemoryDataset data = images();
    const std::size_t rows = 4, pipelines = ranks() / stages;
    std::vector<std::string> cuts{"dense2", "dense3", "dense4"};
    cuts.resize(stages - 1);
    const auto activations = [&](std::size_t micro_batches) {
      const StagedRun run =
          pipelined(perceptron(), data,
                    {.cuts = cuts, .global_batch = rows * micro_batches * pipelines, .micro_batches = micro_batches});
      REQUIRE(run.plan.capacity() == rows);
      return run.strategy->memory().activations;
    };
    const std::size_t behind = stages - 1 - rank() % stages, held = activations(stages);
    CHECK(activations(3 * stages) == held);
    for (std::size_t fewer = 1; fewer < stages; ++fewer) {
      INFO(fewer << " micro-batches");
      const std::size_t some = activations(fewer);
      if (fewer > behind)
        CHECK(some == held);
      else
        CHECK(some < held);
    }
  }
}

TEST_CASE("a number that is none is found in whatever stage, and no rank updates") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    const PipelineSet set{.stages = stages, .check_gradients = true};
    StagedRun run = pipelined(perceptron(), data, set);
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
    StagedRun run = pipelined(perceptron(), data, {.stages = stages});
    StepFlags flags;
    flags.written = 1;
    if (rank() == 0) flags.stop = 1;
    run.strategy->raise(flags);
    const StepResult result = run.step();
    CHECK(result.stop);
    CHECK(result.flags.written == static_cast<double>(ranks()));
  }
}

TEST_CASE("a pipeline keeps its number of micro-batches") {
  for (const std::size_t stages : stage_counts()) {
    const MemoryDataset data = images();
    StagedRun run = pipelined(perceptron(), data, {.stages = stages});
    run.strategy->set_micro_batches(4);  // as before
    for (const std::size_t count : {3, 5})
      require_mentions(message_of<InputError>([&] { run.strategy->set_micro_batches(count); }),
                       {"the same micro-batches", ".shares = equal"});
    CHECK_FALSE(run.step().nonfinite);
  }
}

TEST_CASE("what a pipeline is not for is refused, with the remedy") {
  if (ranks() == 1) {
    require_mentions(refused({}), {"two stages or more", "mirrored"});
    require_mentions(refused({.stages = 2}), {"1 rank cannot be pipelines of 2 stages"});
    return;
  }
  require_mentions(refused({.stages = ranks() + 1}), {"cannot be pipelines", "multiple of"});
  require_mentions(refused({.stages = 1}), {"two stages or more"});
  require_mentions(refused({.stages = ranks(), .cuts = std::vector<std::string>(ranks(), "dense2")}),
                   {".pipeline.cuts", ".pipeline.stages"});
  std::vector<std::string> cuts(ranks() - 1, "dense2");
  cuts.front() = "dense9";
  require_mentions(refused({.cuts = cuts}), {"'dense9'", "no such operation", "dense2, dense3 or dense4"});
  cuts.front() = "flatten1";
  require_mentions(refused({.cuts = cuts}), {"'flatten1'", "the first stage begins"});
  cuts.front() = "conv3";
  require_mentions(refused({.cuts = cuts}, residual_network()), {"'conv3'", "2 values", "a stage sends one"});
  if (ranks() > 2) require_mentions(refused({.cuts = std::vector<std::string>(ranks() - 1, "dense2")}), {"different"});
  if (ranks() > 2)
    require_mentions(refused({}, Sequential(Flatten(), Dense(9), Dense(4))), {"into 2 stages", "at most"});
  require_mentions(
      refused({}, perceptron(),
              [](MirroredOptions& o) { o.platform.primitives = make_rounded_primitives(DType::bfloat16); }),
      {"float32"});
  require_mentions(refused({}, perceptron(), [](MirroredOptions& o) { o.memory_limit = 1000; }), {"memory_limit"});
  require_mentions(refused({}, perceptron(), [](MirroredOptions& o) { o.divide_states = true; }), {".divide_states"});
}
