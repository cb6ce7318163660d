// An optimizer whose states are divided over the ranks has the bits of one that every rank has whole, and takes its
// part of the memory.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "strategy/step_by_hand.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/own_exchange.hpp>

using namespace ronda;
using namespace ronda::test;

namespace sharded_test {
namespace {

constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

/// What this rank saves of what is divided.
Numbers saved_by(MirroredStrategy& strategy) {
  Numbers all;
  for (const State& state : strategy.state().divided().whole()) {
    CHECK(state.scope == Scope::sharded);
    all.emplace(state.name, to_file(state));
  }
  return all;
}

/// The strategy whose states are divided has what the other has, over all ranks once.
void check_equal(MirroredStrategy& parts, MirroredStrategy& whole) {
  CHECK(parts.parameter_hash() == whole.parameter_hash());
  static_cast<void>(parts.state().divided().whole());  // from here on there is a place for what is gathered
  parts.state().gather_state();
  whole.state().gather_state();
  const Numbers expected = shown_by(whole), here = shown_by(parts), saved = saved_by(parts);
  check_same_numbers(here, expected);
  check_same_numbers(saved, expected);
  CHECK(std::ssize(here) + sum_over_ranks(std::ssize(saved)) == std::ssize(expected));
}

DeviceSet divided(DeviceSet set, const DeviceRun& whole) {
  set.strategy = "sharded";
  set.picks = whole.strategy.picks();
  return set;
}

/// `steps` steps of both.
void check_equal_steps(const DeviceSet& set, const MemoryDataset& data, Sequential (*model)(), std::size_t steps = 7) {
  DeviceRun whole(everybody(), nullptr, model(), data, set);
  DeviceRun parts(everybody(), nullptr, model(), data, divided(set, whole));
  check_same_steps(whole, parts, steps);
  check_equal(parts.strategy, whole.strategy);
}

ParameterGroup last_bias_alone(std::string_view name) { return {.frozen = name != "dense2.bias"}; }

}  // namespace

TEST_CASE("a divided optimizer has the bits of a whole one, by every rule, in a node's memory and by a ring") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const OptimizerRow& row : optimizer_rows())
    for (const AllreduceAlgorithm algorithm : exchanges) {
      if (row.name == "lamb" || row.name == "muon") continue;  // refused
      INFO(row.name << " by " << name_of(algorithm));
      check_equal_steps(
          {.global_batch = 50, .optimizer = std::string(row.name), .library = true, .algorithm = algorithm}, data,
          three_layers);
    }
}

TEST_CASE("so it has with accumulation, clipping, the finite check, an average and convolutions in blocked layouts") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  check_all_that_steps_do({"momentum", "adam"}, three_layers, cnn,
                          [&](const DeviceSet& set, auto model) { check_equal_steps(set, data, model); });
}

TEST_CASE("so it has with synchronised batch norms, and with frozen parameters and rates of their own") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges)
    check_equal_steps(
        {.global_batch = 50, .optimizer = "adamw", .library = true, .group_of = some_frozen, .algorithm = algorithm},
        data, [] {
          return Sequential(Conv2d(6, 3, {.bias = false}), SyncBatchNorm(), ReLU(), Conv2d(8, 3), ReLU(), Flatten(),
                            Dense(9), Dense(4));
        });
}

TEST_CASE("pruned weights stay zero in every share") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceSet set{
        .global_batch = 50, .optimizer = "adam", .library = true, .group_of = pruned_weights, .algorithm = algorithm};
    DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
    DeviceRun parts(everybody(), nullptr, three_layers(), data, divided(set, whole));
    for (DeviceRun* run : {&whole, &parts}) {
      run->steps(3);
      run->strategy.state().prune(0.7);
      run->steps(3);
    }
    CHECK(parts.strategy.state().zeros().zeros == whole.strategy.state().zeros().zeros);
    check_equal(parts.strategy, whole.strategy);
  }
}

TEST_CASE("with layers in bfloat16 the masters and what layers read of them are the same on all ranks") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const bool widened : {false, true}) {
    DeviceSet set{.global_batch = 50, .optimizer = "adam", .dtype = DType::bfloat16};
    if (widened) set.reduce_dtype = DType::float32;
    DeviceRun whole(everybody(), nullptr, cnn(), data, set);
    DeviceRun parts(everybody(), nullptr, cnn(), data, divided(set, whole));
    whole.steps(5);
    parts.steps(5);
    check_equal(parts.strategy, whole.strategy);
    const auto expected = whole.strategy.parameters();
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(std::ranges::equal(std::span(parts.strategy.parameters()[i].value.data(), expected[i].value.desc().bytes()),
                               std::span(expected[i].value.data(), expected[i].value.desc().bytes())));
  }
}

TEST_CASE("the parts of a step, called by hand, give its bits") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceSet set{.global_batch = 32, .optimizer = "adam", .strategy = "sharded", .algorithm = algorithm};
    DeviceRun whole(everybody(), nullptr, three_layers(), data, set),
        parts(everybody(), nullptr, three_layers(), data, set);
    for (int k = 0; k < 4; ++k) {
      whole.step();
      step_by_hand(parts.strategy, parts.loader.next());
    }
    CHECK(parts.strategy.parameter_hash() == whole.strategy.parameter_hash());
  }
}

TEST_CASE("all ranks hear of an update that overflows in the share of one") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceRun run(everybody(), nullptr, mlp(), data,
                  {.global_batch = 32,
                   .optimizer = "sgd",
                   .group_of = last_bias_alone,
                   .strategy = "sharded",
                   .algorithm = algorithm});
    CHECK_FALSE(run.step().spoiled);
    run.strategy.state().set_rate_factor(1e300);
    CHECK(run.step().spoiled);
  }
}

TEST_CASE("a rank plans the memory of its share of the states, and keeps no more") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const auto ranks = static_cast<std::size_t>(world().size());
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceSet set{.global_batch = 32, .optimizer = "adam", .node_update_bytes = never, .algorithm = algorithm};
    DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
    DeviceRun parts(everybody(), nullptr, three_layers(), data, divided(set, whole));
    const std::size_t all = whole.strategy.memory().optimizer, mine = parts.strategy.memory().optimizer;
    CHECK(sum_over_ranks(static_cast<std::int64_t>(mine)) == static_cast<std::int64_t>(all));
    CHECK(mine <= all / ranks + 2 * 64);  // cut at lines of 64 bytes, two states
    CHECK(parts.strategy.memory().total() - parts.strategy.memory().exchange ==
          whole.strategy.memory().total() - whole.strategy.memory().exchange - (all - mine));
    std::size_t kept = 0;
    for (const StatePiece& piece : parts.strategy.state().divided().pieces()) kept += piece.count * sizeof(float);
    CHECK(kept <= mine);
    set.ema_decay = 0.9;  // an average is whole on every rank
    DeviceRun averaged(everybody(), nullptr, three_layers(), data, divided(set, whole));
    CHECK(averaged.strategy.memory().optimizer == mine + all / 2);
  }
}

TEST_CASE("more ranks than lines of parameters leave some without any") {
  const MemoryDataset data = toy_images(64, {1, 1, 1}, 2);
  for (const AllreduceAlgorithm algorithm : exchanges)
    check_equal_steps({.global_batch = 32, .optimizer = "adam", .algorithm = algorithm}, data,
                      [] { return Sequential(Flatten(), Dense(2)); });
}

TEST_CASE("a mirrored strategy refuses a strategy of parts, and an own exchange that none makes") {
  require_mentions(refusal_of({.strategy = Split{}}), {".strategy = split", "MirroredStrategy", "make_strategy"});
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const BatchPlan plan(data.size(), 32, shard_of(everybody()));
  const Sequential model = mlp();
  const SoftmaxCrossEntropy loss;
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.strategy = OwnExchange{};
  require_mentions(message_of<InputError>([&] {
                     MirroredStrategy(everybody(), model, loss, make_optimizer({.name = "sgd"}),
                                      Schedule({.learning_rate = 0.05}), options);
                   }),
                   {"OwnExchange::make"});
}

TEST_CASE("what needs more than its own share is refused, with the remedy") {
  for (const char* optimizer : {"lamb", "muon"})
    require_mentions(refusal_of({.optimizer = optimizer, .strategy = "sharded"}, mlp()),
                     {optimizer, ".strategy = sharded", ".strategy = mirrored"});
  require_mentions(refusal_of({.optimizer = "lars", .dtype = DType::bfloat16, .strategy = "sharded"}, mlp()),
                   {"lars", "bfloat16", ".strategy = mirrored"});
  const Devices devices(everybody(), AllreduceAlgorithm::staged);
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  require_mentions(message_of<InputError>([&] { DeviceRun(devices, mlp(), data, {.strategy = "sharded"}); }),
                   {"GPU", ".strategy = sharded", ".device = cpu"});
}

}  // namespace sharded_test
