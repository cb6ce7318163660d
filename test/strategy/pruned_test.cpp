// Weights that are set to zero stay zero, the same on all ranks, whatever computes, sums and updates them.
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <ronda/core/error.hpp>
#include <ronda/core/hash.hpp>
#include <ronda/core/number.hpp>

using namespace ronda;
using namespace ronda::test;

namespace pruned_test {
namespace {

ParameterGroup pruned(std::string_view name) { return {.pruned = name.ends_with(".weight") && name != "conv1.weight"}; }

/// In file layout, by name, of all that a visitor is shown.
std::map<std::string, std::vector<float>> numbers_of(DeviceRun& run) {
  struct Numbers final : StateVisitor {
    void visit(const State& state) override {
      if (state.tensor.dtype() != DType::float32) return;
      const Tensor here(state.tensor.desc(), state.tensor.data());  // the memory of these devices can be looked at
      all.emplace(state.name, to_file({state.name, here, state.scope, state.flattened}));
    }
    std::map<std::string, std::vector<float>> all;
  } numbers;
  if (run.computing.stream) run.stream().synchronize();
  run.strategy.visit(numbers);
  return numbers.all;
}

bool equal_on_all_ranks(const std::vector<float>& numbers) {
  const auto all = everybody().gather_texts(Hash().add(std::as_bytes(std::span(numbers))).text());
  return std::ranges::all_of(all, [&](const std::string& text) { return text == all.front(); });
}

/// Trains, prunes, trains: the zeros stay, and all else moves.
void check_pruning(DeviceRun& run) {
  run.steps(3);
  CHECK_FALSE(run.strategy.state().keeps_zeros());
  for (const double share : {0.5, 0.9}) {
    run.strategy.state().prune(share);
    const auto before = numbers_of(run);
    std::uint64_t weights = 0, zeros = 0;
    for (const auto& p : run.strategy.parameters()) {
      const auto& values = before.at(p.name);
      const auto found = static_cast<std::uint64_t>(std::ranges::count(values, 0.0F));
      if (!pruned(p.name).pruned) continue;
      CHECK(found == static_cast<std::uint64_t>(std::llround(share * static_cast<double>(values.size()))));
      weights += values.size();
      zeros += found;
    }
    CHECK(run.strategy.state().zeros().weights == weights);
    CHECK(run.strategy.state().zeros().zeros == zeros);
    run.steps(4);
    const auto after = numbers_of(run);
    for (const auto& p : run.strategy.parameters()) {
      INFO(p.name << ", " << share);
      const auto &old = before.at(p.name), &now = after.at(p.name);
      std::size_t moved = 0, alive = 0;
      for (std::size_t i = 0; i < now.size(); ++i) {
        const bool gone = pruned(p.name).pruned && old[i] == 0;
        if (gone) REQUIRE(now[i] == 0);
        if (gone && after.contains(p.name + ".ema")) REQUIRE(after.at(p.name + ".ema")[i] == 0);
        alive += gone ? 0 : 1;
        moved += !gone && now[i] != old[i] ? 1 : 0;
      }
      if (pruned(p.name).pruned) {  // what layers read has the same zeros
        const auto read = floats_of(Tensor(p.value.desc(), p.value.data()));
        CHECK(std::ranges::count(read, 0.0F) >= std::ranges::count(old, 0.0F));
      }
      CHECK(alive > 0);
      CHECK(10 * moved >= alive);
      CHECK(equal_on_all_ranks(now));
    }
    CHECK_FALSE(run.strategy.parameter_hash().empty());  // throws where replicas differ
  }
}

Sequential model() { return Sequential(Conv2d(4, 3), SiLU(), MaxPool2d(2), Flatten(), Dense(33), SiLU(), Dense(4)); }

}  // namespace

TEST_CASE("on the processor zeros stay, by every optimizer, in a node's memory by parts and by a ring") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
  for (const OptimizerRow& row : optimizer_rows())
    for (const std::size_t node_update_bytes : {std::size_t{0}, never})
      for (const std::size_t micro_batches : {1, 2}) {
        INFO(row.name << ", by parts from " << node_update_bytes << ", micro-batches " << micro_batches);
        DeviceRun run(everybody(), nullptr, model(), data,
                      {.optimizer = std::string(row.name),
                       .micro_batches = micro_batches,
                       .library = true,
                       .ema_decay = micro_batches == 2 ? 0.9 : 0,
                       .node_update_bytes = node_update_bytes,
                       .group_of = pruned});
        check_pruning(run);
      }
}

TEST_CASE("with bfloat16 layers the masters are pruned, and layers read zeros") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  for (const char* optimizer : {"nesterov", "adamw", "lamb"})
    for (const bool widened : {false, true}) {
      DeviceSet set{.optimizer = optimizer, .dtype = DType::bfloat16, .ema_decay = 0.9, .group_of = pruned};
      if (widened) set.reduce_dtype = DType::float32;
      DeviceRun run(everybody(), nullptr, model(), data, set);
      check_pruning(run);
    }
}

TEST_CASE("on devices recorded steps keep zeros") {
  const MemoryDataset data = toy_images(302, {9, 7, 1}, 4);
  for (const auto way : ways) {
    const Devices devices(everybody(), way);
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      DeviceRun run(devices, model(), data,
                    {.optimizer = "adamw", .in_flight = 2, .dtype = dtype, .ema_decay = 0.9, .group_of = pruned});
      check_pruning(run);
    }
  }
}

TEST_CASE("a share that is none is refused, and so is pruning while steps are under way") {
  const MemoryDataset data = toy_images(100, {9, 7, 1}, 4);
  DeviceRun run(everybody(), nullptr, mlp(), data, {.group_of = pruned});
  for (const double share : {-0.1, 1.1, std::nan("")})
    require_mentions(message_of<InputError>([&] { run.strategy.state().prune(share); }), {"from 0 to 1"});
  const Batch& batch = run.loader.next();
  run.strategy.begin_step(batch);
  CHECK_THROWS_AS(run.strategy.state().prune(0.5), LogicError);
  run.strategy.finish_step();
  run.strategy.state().prune(1);
  CHECK(run.strategy.state().zeros().zeros == run.strategy.state().zeros().weights);
}

}  // namespace pruned_test
