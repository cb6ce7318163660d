// A model whose operations are split over ranks does what a whole one does.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "strategy/named_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/split/planned_part_exchange.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>
#include <ronda/runtime/strategy/strategies.hpp>

using namespace ronda;
using namespace ronda::test;

namespace split_test {
namespace {

struct SplitSet {
  Split split = {};
  std::size_t global_batch = 50, micro_batches = 1;
  std::string optimizer = "momentum";
  bool library = false;
  std::function<void(MirroredOptions&)> change = {};
};

Shard shard_by(const SplitSet& set) { return set.split.shard(this_rank(), rank_count()); }

NamedRun run_of(const Communicator& communicator, const char* name, Sequential model, const Dataset& data,
                const SplitSet& set) {
  return {{communicator, name, shard_by(set), set.global_batch, set.micro_batches, set.optimizer},
          std::move(model),
          data,
          [&](MirroredOptions& options) {
            if (std::string_view(name) == Split::name) options.strategy = set.split;
            options.platform.primitives = set.library ? make_onednn_primitives(1) : make_reference_primitives();
            if (set.change) set.change(options);
          }};
}

NamedRun in_parts(Sequential model, const Dataset& data, const SplitSet& set) {
  return run_of(everybody(), "split", std::move(model), data, set);
}

/// Whole models, one for each group: a rank is with those that have its part.
NamedRun as_one(Sequential model, const Dataset& data, const SplitSet& set) {
  const auto part = static_cast<int>(this_rank() % set.split.parts_on(rank_count()));
  return run_of(world().communicator().split(part, world().rank()), "mirrored", std::move(model), data, set);
}

/// Losses, norms, parameters and states after some steps, the last of them short.
void check_split_steps(Sequential (*model)(), const SplitSet& set, std::size_t steps = 8, double tolerance = 1e-5,
                       const Shape& sample = {12, 12, 1}) {
  const MemoryDataset data = toy_images(131, sample, 4);
  NamedRun parts = in_parts(model(), data, set), all = as_one(model(), data, set);
  compare_steps(parts, all, steps, tolerance);
}

Sequential four_dense() {
  return Sequential(Flatten(), Dense(33), ReLU(), Dense(21), ReLU(), Dense(13), ReLU(), Dense(5));
}
Sequential wide_dense() { return Sequential(Flatten(), Dense(256), ReLU(), Dense(128), ReLU(), Dense(5)); }
Sequential convolutions() {
  return Sequential(Conv2d(6, 3), ReLU(), MaxPool2d(2), Conv2d(8, 3), ReLU(), Flatten(), Dense(9), ReLU(), Dense(4));
}
Sequential transformer() {
  return Sequential(Dense(20), Residual(Sequential(LayerNorm(), MultiHeadAttention(5, {.causal = true}))),
                    Residual(Sequential(LayerNorm(), Dense(24), GELU(), Dense(20))), Flatten(), Dense(4));
}
Sequential norms_and_dropout() {
  return Sequential(Conv2d(8, 3), SyncBatchNorm(), ReLU(), Dropout(0.2), Flatten(), Dense(12), BatchNorm(), ReLU(),
                    Dropout(0.3), Dense(4));
}

/// All ways in which these ranks are groups.
std::vector<std::size_t> part_counts() {
  std::vector<std::size_t> counts;
  for (std::size_t parts = 1; parts <= rank_count(); ++parts)
    if (rank_count() % parts == 0) counts.push_back(parts);
  return counts;
}

SplitSet by_hand(std::size_t parts) {
  return {.split = {parts, {"dense1=columns", "dense2=rows", "dense3=columns", "dense4=columns"}}};
}

void clip_and_check(MirroredOptions& options) {
  options.clip_norm = 0.05;
  options.check_gradients = true;
  options.group_of = [](std::string_view name) {
    return ParameterGroup{.rate_factor = name.ends_with(".bias") ? 0.5 : 1, .frozen = name == "dense2.weight"};
  };
}

}  // namespace

TEST_CASE("what parts tell each other in a pass is summed and gathered the same on all") {
  Communicator all = everybody();
  std::vector<std::size_t> widths;
  for (std::size_t part = 0; part < rank_count(); ++part) widths.push_back(part + 2);
  const std::size_t whole = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const PartMessages sums{.sums = 1000}, few{.sums = 3}, rows{.rows = 7, .widths = widths};
  PlannedPartExchange exchange(all, std::vector<PartMessages>{sums, few, rows});
  for (int round = 0; round < 3; ++round) {
    for (const std::size_t count : {1000, 3}) {
      std::vector<float> numbers(count);
      for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>((i + 1) * (this_rank() + 1));
      exchange.add_up(numbers);
      const std::size_t ranks = rank_count() * (rank_count() + 1) / 2;
      for (std::size_t i = 0; i < count; ++i) REQUIRE(numbers[i] == static_cast<float>((i + 1) * ranks));
    }
    std::vector<float> mine(7 * widths[this_rank()]), gathered(7 * whole);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<float>(100 * this_rank() + i);
    exchange.gather(mine, gathered, widths);
    std::size_t place = 0;
    for (std::size_t row = 0; row < 7; ++row)
      for (std::size_t part = 0; part < rank_count(); ++part)
        for (std::size_t i = 0; i < widths[part]; ++i)
          REQUIRE(gathered[place++] == static_cast<float>(100 * part + row * widths[part] + i));
  }
  CHECK(exchange.costs().bytes == 3 * sizeof(float) * (1003 + 7 * whole));
  std::vector<float> unplanned(5);
  CHECK_THROWS_AS(exchange.add_up(unplanned), LogicError);
}

TEST_CASE("a hundred steps of a split model have the losses of a whole one") {
  for (const std::size_t parts : part_counts()) {
    INFO(parts << " parts");
    SplitSet set = by_hand(parts);
    set.optimizer = "sgd";  // momentum makes more of the roundings of other sums
    check_split_steps(four_dense, set, 100);
  }
}

TEST_CASE("what parts have alike stays equal, however the groups add up") {
  // The first part has a bias more, so that a parameter lies elsewhere in each part's arena; rounding by blocks sees
  // that.
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const std::size_t parts : part_counts()) {
    INFO(parts << " parts");
    SplitSet set{.split = {parts, {"dense1=columns", "dense2=rows"}}};
    set.change = [](MirroredOptions& options) {
      options.fusion.algorithm = AllreduceAlgorithm::ring;
      options.fusion.compression = Compression::int8;
    };
    NamedRun run = in_parts(four_dense(), data, set);
    for (int k = 0; k < 5; ++k) {
      run.step();
      CHECK_FALSE(run.strategy->parameter_hash().empty());  // throws where ranks differ
    }
  }
}

TEST_CASE("statistics that ranks of a group bring from elsewhere become one") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const std::size_t parts : part_counts()) {
    NamedRun run = in_parts(norms_and_dropout(), data, {.split = {parts, {"dense1=columns"}}});
    run.step();
    struct Shift final : StateVisitor {
      void visit(const State& state) override {
        if (state.scope == Scope::averaged && state.tensor.desc().dtype == DType::float32)
          for (float& number : state.tensor.as<float>()) number += static_cast<float>(world().rank());
      }
    } shift;
    run.strategy->state().visit_model(shift);
    run.strategy->state().average_states();
    for (const auto& [name, numbers] : layer_states_of(*run.strategy)) {
      INFO(name);
      std::vector<float> of_first = numbers;
      everybody().broadcast(Tensor(std::span(of_first)));
      CHECK(numbers == of_first);
    }
  }
}

TEST_CASE("so have one that the cost model splits, and one of convolutions, in the library's layouts") {
  for (const std::size_t parts : part_counts()) {
    INFO(parts << " parts");
    SplitSet set{.split = {.parts = parts}, .library = true};
    check_split_steps(wide_dense, set);
    const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
    const SplitCosts costs = in_parts(wide_dense(), data, set).strategy->split();
    CHECK(costs.parts == parts);
    if (parts > 1) CHECK(costs.layers == std::vector<std::string>{"dense1=columns", "dense2=rows"});
    set.split.layers = {"conv1=columns", "conv2=rows", "dense1=columns", "dense2=rows"};
    check_split_steps(convolutions, set);
    set.split.layers = {"conv1=columns", "conv2=columns", "dense1=rows"};
    check_split_steps(convolutions, set);
  }
}

TEST_CASE("norms, checks, groups, micro-batches and rates are those of the whole model") {
  for (const std::size_t parts : part_counts())
    for (const char* optimizer : {"sgd", "adam"}) {
      INFO(parts << " parts, " << optimizer);
      SplitSet set = by_hand(parts);
      set.micro_batches = 3;
      set.optimizer = optimizer;
      set.change = clip_and_check;
      check_split_steps(four_dense, set, 8, 1e-4);
    }
}

TEST_CASE("norms of batches and dropout beside split operations are those of the whole model") {
  for (const std::size_t parts : part_counts())
    check_split_steps(norms_and_dropout, {.split = {parts, {"conv1=columns", "dense1=columns", "dense2=rows"}}}, 8,
                      1e-4);
}

TEST_CASE("an attention is split by heads, beside layers that are whole") {
  for (const std::size_t parts : part_counts()) {
    INFO(parts << " parts");
    SplitSet set{.split = {parts, {"attention1=heads", "dense2=columns", "dense3=rows"}}, .library = true};
    check_split_steps(transformer, set, 8, 1e-4, {6, 7});
  }
}

TEST_CASE("an evaluation sees each sample once, by whole outputs") {
  for (const std::size_t parts : part_counts()) {
    INFO(parts << " parts");
    const MemoryDataset data = toy_images(131, {12, 12, 1}, 4), test = toy_images(57, {12, 12, 1}, 4, 2);
    NamedRun split = in_parts(convolutions(), data, {.split = {parts, {"conv1=columns", "dense2=columns"}}}),
             whole = as_one(convolutions(), data, {.split = {.parts = parts}});
    for (int k = 0; k < 3; ++k) {
      split.step();
      whole.step();
    }
    const TopKAccuracy top2(2);
    const auto evaluated = [&](NamedRun& run, double& seen) {
      const Shard shard = split.strategy->shard();
      BatchLoader loader(
          test, SampleOrder(test.size(), 0, false),
          BatchPlan(test.size(), run.plan.capacity() * shard.count, shard).with_capacity(run.plan.capacity()));
      return run.strategy->evaluate(
          loader, [&](const Batch& batch, const Tensor&) { seen += static_cast<double>(batch.real()); }, {&top2});
    };
    double seen = 0, ignored = 0;
    const Evaluation mine = evaluated(split, seen), expected = evaluated(whole, ignored);
    CHECK(mine.loss == Approx(expected.loss).epsilon(1e-4));
    CHECK(mine.metric == Approx(expected.metric));
    CHECK(mine.metrics.at(0).number() == Approx(expected.metrics.at(0).number()));
    Communicator everyone = everybody();
    everyone.allreduce(Tensor(std::span(&seen, 1)));
    CHECK(seen == 57);
  }
}

TEST_CASE("an average of split parameters is kept and shown whole; the smallest weights of the whole are pruned") {
  for (const std::size_t parts : part_counts()) {
    const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
    SplitSet set = by_hand(parts);
    set.change = [](MirroredOptions& options) {
      options.ema_decay = 0.7;
      options.group_of = pruned_weights;
    };
    NamedRun split = in_parts(four_dense(), data, set), whole = as_one(four_dense(), data, set);
    for (int k = 0; k < 6; ++k)
      for (NamedRun* run : {&split, &whole}) {
        if (k == 3) run->strategy->state().prune(0.5);
        run->step();
      }
    const auto averages = [](NamedRun& run) {
      std::vector<float> numbers;
      run.strategy->state().average_states();
      run.strategy->state().with_average([&] { numbers = run.parameters(); });
      return numbers;
    };
    CHECK(relative_distance(averages(split), averages(whole)) < 1e-5);
    CHECK(relative_distance(split.parameters(), whole.parameters()) < 1e-5);
    CHECK(relative_distance(averages(split), split.parameters()) > 1e-4);
    const auto found = split.strategy->state().zeros(), wanted = whole.strategy->state().zeros();
    CHECK(found.weights == wanted.weights);
    CHECK(found.zeros == wanted.zeros);
    CHECK(found.zeros > 0);
  }
}

TEST_CASE("a rank keeps the optimizer's states of its part, and all ranks together save each whole, once") {
  for (const std::size_t parts : part_counts()) {
    const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
    SplitSet set = by_hand(parts);
    set.optimizer = "adam";
    NamedRun split = in_parts(four_dense(), data, set), whole = as_one(four_dense(), data, set);
    for (int k = 0; k < 5; ++k) {
      split.step();
      whole.step();
    }
    if (parts > 1) CHECK(split.strategy->memory().optimizer < whole.strategy->memory().optimizer);
    static_cast<void>(split.strategy->state().divided().whole());  // from here on there is a place for what is gathered
    split.strategy->state().gather_state();
    const Numbers expected = shown_by(*whole.strategy), shown = shown_by(*split.strategy);
    std::int64_t saved = 0;
    for (const State& state : split.strategy->state().divided().whole()) {
      INFO(state.name);
      REQUIRE(expected.contains(state.name));
      CHECK(relative_distance(to_file(state), expected.at(state.name)) < 1e-3);
      ++saved;
    }
    CHECK(shown.size() + static_cast<std::size_t>(sum_over_ranks(saved)) == expected.size());
  }
}

TEST_CASE("a number that is none is found on whatever rank, and none updates") {
  for (const std::size_t parts : part_counts()) {
    const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
    SplitSet set = by_hand(parts);
    set.change = [](MirroredOptions& options) { options.check_gradients = true; };
    NamedRun run = in_parts(four_dense(), data, set);
    run.step();
    const std::vector<float> before = run.parameters();
    Batch spoiled(data.fields(), run.plan.capacity());
    spoiled.copy_from(run.loader.next());
    spoiled.field("input").as<float>()[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK(run.strategy->train_step(spoiled).nonfinite);
    CHECK(run.parameters() == before);
    require_mentions(run.strategy->explain_nonfinite(spoiled), {"on rank 0", "the loss"});
    CHECK_FALSE(run.step().nonfinite);
  }
}

TEST_CASE("what is set in a split model is set after it was gathered, or refused") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const std::size_t parts : part_counts()) {
    INFO(parts << " parts");
    NamedRun run = in_parts(four_dense(), data, by_hand(parts));
    TrainingState& state = run.strategy->state();
    run.step();
    require_mentions(message_of<LogicError>([&] { state.set_updates(1); }), {"gather_state"});
    require_mentions(message_of<LogicError>([&] { state.broadcast_parameters(); }), {"gather_state"});
    const std::string before = state.parameter_hash();  // gathers
    state.set_updates(1);
    CHECK(state.parameter_hash() == before);
    run.step();
    state.gather_state();
    state.parameters()[1].value.as<float>()[0] = 3;
    state.broadcast_parameters();
    static_cast<void>(state.parameter_hash());
    CHECK(state.parameters()[1].value.as<float>()[0] == 3);
    run.step();
  }
}

TEST_CASE("what cannot be split, or be with it, is refused") {
  const auto refusal = [](SplitSet set, Sequential model = four_dense()) {
    const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
    return message_of<InputError>([&] { in_parts(std::move(model), data, set); });
  };
  require_mentions(refusal({.split = {0, {"dense7=columns"}}}), {"'dense7'", "no such operation"});
  require_mentions(refusal({.split = {0, {"dense1"}}}), {"'dense1'", "dense1=columns"});
  for (const char* optimizer : {"lars", "lamb", "muon"}) {
    SplitSet set = by_hand(0);
    set.optimizer = optimizer;
    require_mentions(refusal(set), {optimizer, "whole parameters"});
  }
  if (rank_count() == 1) return;
  require_mentions(refusal({.split = {.parts = 5}}), {"groups of 5", ".parts"});
  require_mentions(refusal({.split = {0, {"dense1=columns"}}}, Sequential(Flatten(), Dense(1))), {"1 output"});
  require_mentions(refusal({}, Sequential(Flatten(), Dense(1))), {"no operation", ".layers"});
}

}  // namespace split_test
