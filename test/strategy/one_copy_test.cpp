// Where the ranks of a node share one copy of the parameters, they have the bits of ranks with a copy each, and take
// the memory of one. In the node's memory and by messages; with RONDA_RANKS_PER_NODE there are several nodes.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "strategy/step_by_hand.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/runtime/strategy/exchange/arena_shares.hpp>

using namespace ronda;
using namespace ronda::test;

namespace one_copy_test {
namespace {

DeviceSet with_one_copy(DeviceSet set, const DeviceRun& whole) {
  set.strategy = Sharded{.one_copy = true};
  set.picks = whole.strategy.picks();
  return set;
}

/// Every rank sees in the one copy what it has in its own, mirrored one.
void check_same_values(DeviceRun& one, DeviceRun& whole) {
  one.strategy.state().gather_state();
  whole.strategy.state().gather_state();
  CHECK(one.strategy.parameter_hash() == whole.strategy.parameter_hash());
  check_same_numbers(shown_by(one.strategy), shown_by(whole.strategy));
}

void check_steps(const DeviceSet& set, const MemoryDataset& data, Sequential (*model)(), std::size_t steps = 7) {
  DeviceRun whole(everybody(), nullptr, model(), data, set);
  DeviceRun one(everybody(), nullptr, model(), data, with_one_copy(set, whole));
  check_same_steps(whole, one, steps);
  check_same_values(one, whole);
}

}  // namespace

TEST_CASE("one copy of the parameters has the bits of a copy each, by every rule") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);  // the last batch of an epoch is short
  for (const OptimizerRow& row : optimizer_rows()) {
    if (row.name == "lamb" || row.name == "muon") continue;  // refused with divided states
    for (const AllreduceAlgorithm algorithm : exchanges) {
      INFO(row.name << " by " << name_of(algorithm));
      check_steps({.global_batch = 50, .optimizer = std::string(row.name), .library = true, .algorithm = algorithm},
                  data, three_layers);
    }
  }
}

TEST_CASE(
    "so has one copy with accumulation, clipping, the finite check, an average and convolutions in blocked layouts") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  check_all_that_steps_do({"adam"}, three_layers, cnn,
                          [&](const DeviceSet& set, auto model) { check_steps(set, data, model); });
}

TEST_CASE("an average lies once, too, and takes the parameters' place while it is looked at") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  DeviceSet set{.global_batch = 50, .optimizer = "momentum", .ema_decay = 0.7};
  DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
  DeviceRun one(everybody(), nullptr, three_layers(), data, with_one_copy(set, whole));
  for (int round = 0; round < 3; ++round) {
    whole.steps(2);
    one.steps(2);
    std::vector<float> expected;
    whole.strategy.state().with_average([&] { expected = whole.parameters(); });
    one.strategy.state().with_average([&] {
      CHECK(one.parameters() == expected);
      one.strategy.state().with_average([&] { CHECK(one.parameters() == expected); });
    });
    CHECK_THROWS_AS(one.strategy.state().with_average([] { throw as_agreed(Error("enough")); }), Error);
    check_same_values(one, whole);
  }
  whole.strategy.state().restart_average();
  one.strategy.state().restart_average();
  check_same_values(one, whole);
}

TEST_CASE("it is pruned once") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);
  DeviceSet set{.global_batch = 50, .optimizer = "adam", .ema_decay = 0.9, .group_of = pruned_weights};
  DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
  DeviceRun one(everybody(), nullptr, three_layers(), data, with_one_copy(set, whole));
  for (const double share : {0.4, 0.7}) {
    for (DeviceRun* run : {&whole, &one}) {
      run->strategy.state().prune(share);
      run->steps(3);
    }
    CHECK(one.strategy.state().zeros().zeros == whole.strategy.state().zeros().zeros);
    check_same_values(one, whole);
  }
}

TEST_CASE("the parts of a step, called by hand, give its bits, in one copy") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const AllreduceAlgorithm algorithm = GENERATE(AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring);
  const DeviceSet set{.global_batch = 32, .optimizer = "adam", .algorithm = algorithm};
  DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
  DeviceRun one(everybody(), nullptr, three_layers(), data, with_one_copy(set, whole));
  for (int k = 0; k < 4; ++k) {
    whole.step();
    step_by_hand(one.strategy, one.loader.next());
  }
  check_same_values(one, whole);
}

TEST_CASE("all ranks have what the first sets") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  DeviceRun run(everybody(), nullptr, three_layers(), data,
                {.global_batch = 32, .ema_decay = 0.9, .strategy = Sharded{.one_copy = true}});
  run.steps(2);
  const auto first = [&] { return run.strategy.parameters().front().value.as<float>(); };
  run.strategy.state().meet();
  if (world().rank() == 0) std::ranges::fill(first(), 0.25F);
  run.strategy.broadcast_parameters();
  CHECK(std::ranges::count(first(), 0.25F) == std::ssize(first()));
  run.strategy.state().with_average([&] { CHECK(std::ranges::count(first(), 0.25F) == std::ssize(first())); });
}

TEST_CASE("the cause of numbers that are not finite is found as with a copy each") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const AllreduceAlgorithm algorithm = GENERATE(AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring);
  DeviceSet set{.global_batch = 32, .optimizer = "sgd", .algorithm = algorithm};
  DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
  DeviceRun one(everybody(), nullptr, three_layers(), data, with_one_copy(set, whole));
  check_same_cause(whole, one);
  CHECK(one.parameters() == whole.parameters());  // what was not finite is zero
}

TEST_CASE("a rank plans its part of the one copy, and of the average") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const auto ranks = static_cast<std::size_t>(world().communicator().topology().ranks_on_node);
  const DeviceSet set{.global_batch = 32, .optimizer = "adam", .ema_decay = 0.9};
  DeviceRun whole(everybody(), nullptr, three_layers(), data, set);
  DeviceRun one(everybody(), nullptr, three_layers(), data, with_one_copy(set, whole));
  const MemoryUse all = whole.strategy.memory(), mine = one.strategy.memory();
  CHECK(mine.parameters == (all.parameters + ranks - 1) / ranks);
  CHECK(mine.gradients == all.gradients);
  const auto nodes = static_cast<std::size_t>(world().communicator().topology().nodes);
  // The states once, the average once a node, rounded up to bytes.
  CHECK(sum_over_ranks(static_cast<std::int64_t>(mine.optimizer)) <=
        static_cast<std::int64_t>(all.optimizer / 3 * (2 + nodes)) + world().size());
}

TEST_CASE("more ranks than lines of parameters leave some without any of the one copy") {
  const MemoryDataset data = toy_images(64, {1, 1, 1}, 2);
  check_steps({.global_batch = 32, .optimizer = "adam", .ema_decay = 0.9}, data,
              [] { return Sequential(Flatten(), Dense(2)); });
}

TEST_CASE("one copy is refused where it cannot be, with the remedy") {
  if (world().size() == 1) return;  // has no other copy to save
  require_mentions(refusal_of({.dtype = DType::bfloat16, .strategy = Sharded{.one_copy = true}}),
                   {".one_copy", "float32", "bfloat16", "leave it out"});
}

TEST_CASE("between nodes, one copy is for ranks that are numbered one after the other on each") {
  const std::int64_t in_turn[] = {0, 0, 1, 1, 1, 2}, dealt[] = {0, 1, 0, 1};
  const std::vector<std::size_t> sizes = share_sizes_by_node(16 * 7 - 3, in_turn);
  CHECK(sizes.size() == 3);
  for (std::size_t node = 0, rank = 0; node < 3; ++node) {
    std::size_t size = 0;
    for (; rank < 6 && in_turn[rank] == static_cast<std::int64_t>(node); ++rank)
      size += share_of_rank(16 * 7 - 3, rank, 6).size();
    CHECK(sizes[node] == size);
  }
  require_mentions(message_of<InputError>([&] { static_cast<void>(share_sizes_by_node(64, dealt)); }),
                   {".one_copy", "one after the other", "--map-by slot", "leave it out"});
}

}  // namespace one_copy_test
