// Where each rank keeps the sums of its share of the gradients alone, steps are those of mirrored replicas: to the bit
// in a node's memory, to rounding by messages. With RONDA_RANKS_PER_NODE there are several nodes.
#include "strategy/compared_runs.hpp"
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/message.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ronda/core/error.hpp>
#include <ronda/core/repeated_memory.hpp>
#include <ronda/runtime/strategy/sharded/gradient_ring.hpp>

using namespace ronda;
using namespace ronda::test;

namespace sharded_gradients_test {
namespace {

Sequential deep() {
  return Sequential(Flatten(), Dense(40), ReLU(), Dense(40), ReLU(), Dense(40), ReLU(), Dense(40), ReLU(), Dense(33),
                    ReLU(), Dense(7), ReLU(), Dense(4));
}
Sequential deep_cnn() {
  return Sequential(Conv2d(6, 3), ReLU(), Conv2d(18, 3), ReLU(), MaxPool2d(2), Conv2d(18, 3, {.bias = false}),
                    BatchNorm(), ReLU(), Flatten(), Dense(20), ReLU(), Dense(4));
}

DeviceSet sharded(DeviceSet set, const DeviceRun& whole) {
  set.strategy = Sharded{.shard_gradients = true};
  set.picks = whole.strategy.picks();
  return set;
}

/// In a node's memory sums have the order of ranks, with mirrored replicas too; two ranks' have no order.
bool has_equal_bits(const DeviceSet& set) {
  const bool on_node = world().communicator().topology().nodes == 1 && set.algorithm != AllreduceAlgorithm::ring;
  return set.micro_batches == 1 && set.clip_norm == 0 && (on_node || world().size() <= 2);
}

/// Sums in another order differ in a float's last bits. Adam divides gradients by their own size, so that one that is
/// almost zero makes a whole step, in one direction or the other.
bool makes_steps_of_rounding(const DeviceSet& set) { return set.optimizer.starts_with("adam"); }
double tolerance(const DeviceSet& set) { return makes_steps_of_rounding(set) ? 5e-3 : 1e-5; }

void check_same_values(DeviceRun& parts, DeviceRun& whole, const DeviceSet& set) {
  parts.strategy.state().gather_state();
  whole.strategy.state().gather_state();
  if (!has_equal_bits(set)) {
    CHECK(relative_distance(parts.parameters(), whole.parameters()) < tolerance(set));
    return;
  }
  CHECK(parts.strategy.parameter_hash() == whole.strategy.parameter_hash());
  check_same_numbers(shown_by(parts.strategy), shown_by(whole.strategy));
}

void check_steps(const DeviceSet& set, const MemoryDataset& data, Sequential (*model)(), bool one_copy = false,
                 std::size_t steps = 7) {
  DeviceRun whole(everybody(), nullptr, model(), data, set);
  DeviceSet divided = sharded(set, whole);
  divided.strategy = Sharded{.one_copy = one_copy, .shard_gradients = true};
  DeviceRun parts(everybody(), nullptr, model(), data, divided);
  const bool equal_bits = has_equal_bits(set);
  if (!equal_bits && makes_steps_of_rounding(set)) steps = 2;
  for (std::size_t k = 0; k < steps; ++k) {
    const StepResult a = whole.step(), b = parts.step();
    CHECK(b.weight == a.weight);
    CHECK(b.gradient_norm == Approx(a.gradient_norm).epsilon(tolerance(set)));
    if (equal_bits)
      CHECK(b.loss == a.loss);
    else
      CHECK(b.loss == Approx(a.loss).epsilon(tolerance(set)));
  }
  check_same_values(parts, whole, set);
}

/// Slots of these sizes, in the order of backward.
std::vector<GradientSlot> slots_of(const std::vector<std::size_t>& bytes) {
  std::vector<GradientSlot> slots;
  std::size_t offset = 0;
  for (const std::size_t size : bytes) {
    const auto id = static_cast<std::uint32_t>(slots.size());
    slots.push_back({ParameterId{id}, "p" + std::to_string(id), offset, size});
    offset += size;
  }
  return slots;
}

std::size_t bytes_of(const std::vector<GradientSlot>& slots) { return slots.back().offset + slots.back().bytes; }

std::vector<ParameterId> ids(std::initializer_list<std::uint32_t> numbers) {
  std::vector<ParameterId> all;
  for (const std::uint32_t number : numbers) all.push_back(ParameterId{number});
  return all;
}

}  // namespace

// ---- the ring -------------------------------------------------------------------------------------------------------

TEST_CASE("a ring has the memory of two buckets, and none is written again before it is summed") {
  const std::size_t page = whole_pages(1), size = 8 * page;
  const std::vector<GradientSlot> slots = slots_of({size, size, size, size});
  const std::vector<GradientWrites> writes{
      {ids({0}), ids({0})}, {ids({1}), ids({1})}, {}, {ids({2}), ids({2})}, {ids({3}), ids({3})}};
  const GradientRing ring(slots, bytes_of(slots), writes, page);
  CHECK(ring.buckets.size() == 4);
  CHECK(ring.memory.memory() == 2 * size);
  CHECK(ring.summed_before == std::vector<std::size_t>{0, 0, 1, 2, 0});
}

TEST_CASE("what one call writes is in one bucket, and small ones are together") {
  const std::size_t page = whole_pages(1), size = 8 * page;
  const std::vector<GradientSlot> slots = slots_of({64, size, 64, size, 64, 64, 64, 64});
  const std::vector<GradientWrites> writes{
      {ids({0, 1}), ids({0, 1})}, {ids({2, 3}), ids({2, 3})}, {ids({4, 5}), ids({4, 5})}, {ids({6, 7}), ids({6, 7})}};
  const GradientRing ring(slots, bytes_of(slots), writes, page);
  REQUIRE(ring.buckets.size() == 3);
  CHECK(ring.buckets[1].first_slot == 2);
  CHECK(ring.buckets[2].first_slot == 4);
  CHECK(ring.buckets[2].end_slot == 8);
}

TEST_CASE("a gradient that backward begins with and ends with has memory of its own") {
  const std::size_t size = 8 * whole_pages(1);
  const std::vector<GradientSlot> slots = slots_of({size, size, size, size});
  const std::vector<GradientWrites> writes{
      {ids({3}), {}}, {ids({0}), ids({0})}, {ids({1}), ids({1})}, {ids({2}), ids({2})}, {{}, ids({3})}};
  const GradientRing ring(slots, bytes_of(slots), writes, size);
  CHECK(ring.memory.period == 2 * size);
  CHECK(ring.memory.repeated == 3 * size);
  CHECK(ring.memory.memory() == 3 * size);
}

TEST_CASE("a gradient that is complete before backward writes to the next one needs no memory of its own") {
  const std::size_t size = 8 * whole_pages(1);
  const std::vector<GradientSlot> slots = slots_of({size, size, size, size, size});
  const std::vector<GradientWrites> writes{{ids({0, 4}), {}},    {{}, ids({0})},       {ids({1}), ids({1})},
                                           {ids({2}), ids({2})}, {ids({3}), ids({3})}, {{}, ids({4})}};
  const GradientRing ring(slots, bytes_of(slots), writes, size);
  CHECK(ring.memory.repeated == 4 * size);
  CHECK(ring.memory.period == 2 * size);
}

TEST_CASE("a large gradient with memory of its own makes no bucket larger") {
  const std::size_t size = 8 * whole_pages(1);
  const std::vector<GradientSlot> slots = slots_of({size, size, size, 20 * size});
  const std::vector<GradientWrites> writes{
      {ids({3}), {}}, {ids({0}), ids({0})}, {ids({1}), ids({1})}, {ids({2}), ids({2})}, {{}, ids({3})}};
  const GradientRing ring(slots, bytes_of(slots), writes, size);
  CHECK(ring.buckets.size() == 4);
  CHECK(ring.memory.memory() == 22 * size);
}

// ---- steps ----------------------------------------------------------------------------------------------------------

TEST_CASE("sharded gradients make the steps of whole ones, by every rule") {
  const MemoryDataset data = toy_images(131, {9, 7, 1}, 4);  // the last batch of an epoch is short
  for (const OptimizerRow& row : optimizer_rows())
    for (const AllreduceAlgorithm algorithm : exchanges) {
      if (row.name == "lamb" || row.name == "muon" || row.name == "lars") continue;  // refused
      INFO(row.name << " by " << name_of(algorithm));
      const DeviceSet set{
          .global_batch = 50, .optimizer = std::string(row.name), .library = true, .algorithm = algorithm};
      if (has_equal_bits(set) || row.name == "momentum" || row.name == "adam") check_steps(set, data, deep);
    }
}

TEST_CASE("so they do with accumulation, clipping, the finite check, an average and convolutions in blocked layouts") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  check_all_that_steps_do({"momentum", "adam"}, deep, deep_cnn,
                          [&](const DeviceSet& set, auto model) { check_steps(set, data, model); });
}

TEST_CASE("so they do with one copy of the parameters and an average of it") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges)
    for (const double ema_decay : {0.0, 0.9}) {
      INFO(name_of(algorithm) << " " << ema_decay);
      check_steps(
          {.global_batch = 50, .optimizer = "adam", .library = true, .ema_decay = ema_decay, .algorithm = algorithm},
          data, deep_cnn, true);
    }
}

TEST_CASE("so they do with synchronised batch norms, frozen parameters and rates of their own") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges)
    check_steps(
        {.global_batch = 50, .optimizer = "adamw", .library = true, .group_of = some_frozen, .algorithm = algorithm},
        data, [] {
          return Sequential(Conv2d(6, 3, {.bias = false}), SyncBatchNorm(), ReLU(), Conv2d(8, 3), ReLU(), Flatten(),
                            Dense(9), Dense(4));
        });
}

TEST_CASE("so they do where several layers read a parameter, and values have several readers") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges)
    check_steps({.global_batch = 50, .optimizer = "adam", .library = true, .algorithm = algorithm}, data,
                branching_model);
}

TEST_CASE("so they do where an embedding is an output layer, too") {
  std::vector<std::int32_t> tokens, next;
  const RngKey draw(5, Purpose::test, "tokens");
  for (std::uint64_t i = 0; i < 60 * 6; ++i) {
    tokens.push_back(static_cast<std::int32_t>(draw.below(50, i)));
    next.push_back((tokens.back() + 1) % 50);
  }
  std::vector<Column> columns;
  columns.push_back({"input", Shape{6}, std::move(tokens)});
  columns.push_back({"target", Shape{6}, std::move(next)});
  const MemoryDataset data(std::move(columns));
  const auto model = [] {
    const Embedding table(50, 32);
    return Sequential(table, PositionalEmbedding(6), Dense(64), GELU(), Dense(64), GELU(), Dense(32), LayerNorm(),
                      Dense(table));
  };
  for (const AllreduceAlgorithm algorithm : exchanges)
    check_steps({.global_batch = 24, .optimizer = "momentum", .library = true, .algorithm = algorithm}, data, model);
}

TEST_CASE("padding of parameters stays what it is") {
  const MemoryDataset data = toy_images(131, {12, 12, 1}, 4);
  const DeviceSet set{.global_batch = 50, .optimizer = "adam", .library = true};
  DeviceRun whole(everybody(), nullptr, deep_cnn(), data, set);
  DeviceRun parts(everybody(), nullptr, deep_cnn(), data, sharded(set, whole));
  whole.steps(3);
  parts.steps(3);
  if (!has_equal_bits(set)) return;
  for (std::size_t i = 0; i < whole.strategy.parameters().size(); ++i) {
    const Tensor &a = whole.strategy.parameters()[i].value, &b = parts.strategy.parameters()[i].value;
    REQUIRE(a.desc() == b.desc());
    CHECK(std::memcmp(a.data(), b.data(), a.desc().bytes()) == 0);
  }
}

TEST_CASE("more ranks than lines of parameters leave some without gradients") {
  const MemoryDataset data = toy_images(64, {1, 1, 1}, 2);
  for (const AllreduceAlgorithm algorithm : exchanges)
    check_steps({.global_batch = 32, .optimizer = "adam", .algorithm = algorithm}, data,
                [] { return Sequential(Flatten(), Dense(2)); });
}

TEST_CASE("all ranks hear of an update that overflows in the share of one, and which gradient was the cause") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceSet set{.global_batch = 32, .optimizer = "sgd", .algorithm = algorithm};
    DeviceRun whole(everybody(), nullptr, deep(), data, set);
    DeviceRun parts(everybody(), nullptr, deep(), data, sharded(set, whole));
    check_same_cause(whole, parts);
  }
}

TEST_CASE("a gradient of one rank that is not finite is seen by all, and nothing is updated") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceSet set{.global_batch = 32, .optimizer = "adam", .check_gradients = true, .algorithm = algorithm};
    set.strategy = Sharded{.shard_gradients = true};
    DeviceRun run(everybody(), nullptr, deep(), data, set);
    run.step();
    const std::vector<float> before = run.parameters();
    const Batch& batch = run.loader.next();
    if (world().rank() == world().size() - 1)
      const_cast<Batch&>(batch).field("input").as<float>()[3] = std::numeric_limits<float>::infinity();
    CHECK(run.strategy.train_step(batch).nonfinite);
    CHECK(run.parameters() == before);
    const std::string why = run.strategy.explain_nonfinite(batch);
    require_mentions(why, {"on rank " + std::to_string(world().size() - 1), "the gradient of"});
    CHECK_FALSE(run.step().nonfinite);
  }
}

// ---- memory, and what cannot be -------------------------------------------------------------------------------------

TEST_CASE("a rank plans the memory of two buckets, and of its share") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  const auto ranks = static_cast<std::size_t>(world().size());
  const auto wide = [] {
    return Sequential(Flatten(), Dense(256), Dense(256), Dense(256), Dense(256), Dense(256), Dense(256), Dense(256),
                      Dense(4));
  };
  for (const AllreduceAlgorithm algorithm : exchanges) {
    DeviceSet set{.global_batch = 32, .optimizer = "adam", .micro_batches = 2, .algorithm = algorithm};
    DeviceRun whole(everybody(), nullptr, wide(), data, set);
    DeviceRun parts(everybody(), nullptr, wide(), data, sharded(set, whole));
    const MemoryUse all = whole.strategy.memory(), mine = parts.strategy.memory();
    if (ranks == 1) {
      CHECK(mine.gradients == all.gradients);
      continue;
    }
    const std::size_t layer = 256 * 257 * sizeof(float);
    CHECK(mine.gradients <= all.gradients / 2 / ranks + 2 * layer + 8 * whole_pages(1));
    CHECK(mine.parameters == all.parameters);
  }
}

TEST_CASE("a step by hand is refused, since it would see no gradients") {
  const MemoryDataset data = toy_images(64, {9, 7, 1}, 4);
  DeviceRun run(everybody(), nullptr, deep(), data, {.global_batch = 32, .strategy = Sharded{.shard_gradients = true}});
  if (world().size() == 1) return;  // keeps all of them
  require_mentions(message_of<LogicError>([&] { static_cast<void>(run.strategy.begin_pass(run.loader.next())); }),
                   {".shard_gradients", "train_step"});
}

TEST_CASE("what needs whole gradients is refused, with the remedy") {
  const auto refusal = [](DeviceSet set) {
    set.strategy = Sharded{.shard_gradients = true};
    return refusal_of(set, deep());
  };
  require_mentions(refusal({.optimizer = "lars"}), {"lars", ".shard_gradients", "leave that out"});
  require_mentions(refusal({.dtype = DType::bfloat16}), {"bfloat16", ".shard_gradients", "float32"});
  require_mentions(refusal({.compression = Compression::int8}), {".compression", ".shard_gradients"});
  require_mentions(refusal({.algorithm = AllreduceAlgorithm::halving}), {"halving", ".shard_gradients", "ring"});
}

}  // namespace sharded_gradients_test
