// A training step allocates nothing of ours. Operator new is counted where it is called from this program, into which
// the whole library is linked; what oneDNN, MPI and stand-ins for devices take inside is their own business.
#include "strategy/device_run.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>
#include <ronda/runtime/strategy/pipeline/pipeline_strategy.hpp>
#include <ronda/runtime/strategy/split/split_strategy.hpp>

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

namespace {

std::atomic<bool> counting{false};
std::atomic<long> allocations{0};

/// Where this program was loaded; equal for all of its code.
const void* object_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

/// Of `count` steps.
template <class Step>
long allocations_in(std::size_t count, Step&& step) {
  allocations = 0;
  counting = true;
  for (std::size_t k = 0; k < count; ++k) step();
  counting = false;
  return allocations;
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (counting && ronda::test::inside_fakes == 0 && object_of(__builtin_return_address(0)) == object_of(&allocations))
    ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace ronda;
using namespace ronda::test;

TEST_CASE("the count sees an allocation of ours") {
  allocations = 0;
  counting = true;
  std::vector<int> seen(100, 1);
  counting = false;
  CHECK(seen[99] + allocations >= 2);
}

TEST_CASE("a step allocates nothing after the first, whatever reduces it") {
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring}) {
    for (const std::size_t accumulate : {1, 2}) {
      const bool by_parts = accumulate == 1;
      Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(8), SyncBatchNorm(), ReLU(), Dropout(0.2),
                       Dense(4));
      SoftmaxCrossEntropy loss;
      const BatchPlan plan(40, 16, shard_of(world().communicator()), accumulate);
      BatchLoader loader(data, SampleOrder(40, 1, true), plan);
      MirroredOptions options;
      options.shape.fields = {data.fields().begin(), data.fields().end()};
      options.shape.batch_capacity = plan.capacity();
      options.shape.global_batch = 16;
      options.shape.micro_batches = accumulate;
      options.clip_norm = by_parts ? 0 : 1;
      options.ema_decay = 0.9;
      options.group_of = [](std::string_view) { return ParameterGroup{.pruned = true}; };
      options.fusion.first_bucket_bytes = 256;
      options.fusion.algorithm = algorithm;
      options.node_update_bytes = by_parts ? 0 : std::numeric_limits<std::size_t>::max();
      MirroredStrategy strategy(world().communicator(), model, loss,
                                make_optimizer({.name = by_parts ? "adam" : "lamb"}), Schedule({.learning_rate = 0.01}),
                                options);
      const auto step = [&] {
        for (std::size_t i = 0; i + 1 < accumulate; ++i) strategy.accumulate(loader.next());
        strategy.train_step(loader.next());
      };
      step();
      strategy.state().prune(0.5);
      CHECK(allocations_in(7, step) == 0);  // over the end of an epoch
    }
  }
}

TEST_CASE("nor does a step with a sparse table, or with attention") {
  std::vector<std::int32_t> tokens, labels;
  const RngKey draw(5, Purpose::test, "tokens");
  for (std::uint64_t i = 0; i < 40 * 6; ++i) tokens.push_back(static_cast<std::int32_t>(draw.below(500, i)));
  for (std::int32_t n = 0; n < 40; ++n) labels.push_back(n % 2);
  std::vector<Column> columns;
  columns.push_back({"input", Shape{6}, std::move(tokens)});
  columns.push_back({"target", Shape{}, std::move(labels)});
  const MemoryDataset data(std::move(columns));
  const Sequential bags(EmbeddingBag(500, 64), Dense(2));
  const Sequential attention(Embedding(500, 64), PositionalEmbedding(6),
                             MultiHeadAttention(4, {.causal = true, .dropout = 0.1}), Dense(8), Flatten(), Dense(2));
  for (const auto& [model, accumulate] : {std::pair(&bags, std::size_t{1}), {&bags, 2}, {&attention, 1}}) {
    const SoftmaxCrossEntropy loss;
    const BatchPlan plan(40, 16, shard_of(world().communicator()), accumulate);
    BatchLoader loader(data, SampleOrder(40, 1, true), plan);
    MirroredOptions options = MirroredOptions::for_data(data, plan);
    options.clip_norm = accumulate == 1 ? 0 : 1;
    options.node_update_bytes = accumulate == 1 ? 0 : std::numeric_limits<std::size_t>::max();
    MirroredStrategy strategy(world().communicator(), *model, loss, make_optimizer({.name = "adam"}),
                              Schedule({.learning_rate = 0.01}), options);
    const auto step = [&] {
      for (std::size_t i = 0; i + 1 < accumulate; ++i) strategy.accumulate(loader.next());
      strategy.train_step(loader.next());
    };
    step();
    CHECK(allocations_in(7, step) == 0);
  }
}

TEST_CASE("nor does a local step, or one with a synchronisation") {
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring})
    for (const auto& [compression, fragments] :
         {std::pair(Compression::none, std::size_t{1}), {Compression::int8, 1}, {Compression::int8, 2}}) {
      DeviceSet set{.global_batch = 16, .optimizer = "adam", .ema_decay = 0.9, .algorithm = algorithm};
      set.strategy = LocalSgd{.synchronise_every = 2,
                              .outer_optimizer = OuterOptimizer::nesterov,
                              .local_after = 1,
                              .delta_compression = compression,
                              .fragments = fragments};
      DeviceRun run(everybody(), nullptr, mlp(), data, set);
      run.steps(4);
      CHECK(allocations_in(7, [&] { run.step(); }) == 0);
      run.strategy.synchronise_next();
      run.step();
    }
}

TEST_CASE("nor does one that keeps a part of the gradients") {
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  for (const auto algorithm : {AllreduceAlgorithm::automatic, AllreduceAlgorithm::ring})
    for (const std::size_t micro_batches : {1, 2}) {
      DeviceRun run(everybody(), nullptr,
                    Sequential(Flatten(), Dense(40), ReLU(), Dense(40), ReLU(), Dense(40), Dense(4)), data,
                    {.global_batch = 16,
                     .optimizer = "adam",
                     .clip_norm = 1,
                     .micro_batches = micro_batches,
                     .ema_decay = 0.9,
                     .strategy = Sharded{.shard_gradients = true},
                     .algorithm = algorithm});
      run.step();
      CHECK(allocations_in(7, [&] { run.step(); }) == 0);
    }
}

TEST_CASE("nor does a step of a pipeline, or of two pipelines") {
  if (world().size() == 1) return;
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  const Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(8), ReLU(), Dropout(0.2), Dense(4));
  const SoftmaxCrossEntropy loss;
  const Pipeline stages{.stages = 2};
  const auto rank = static_cast<std::size_t>(world().rank()), ranks = static_cast<std::size_t>(world().size());
  const BatchPlan plan(40, 16, stages.shard(rank, ranks), 4);
  BatchLoader loader(data, SampleOrder(40, 1, true), plan);
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.strategy = stages;
  options.clip_norm = 1;
  options.ema_decay = 0.9;
  PipelineStrategy strategy(world().communicator(), model, loss, make_optimizer({.name = "adam"}),
                            Schedule({.learning_rate = 0.01}), options);
  const auto step = [&] {
    for (std::size_t i = 1; i < 4; ++i) strategy.accumulate(loader.next());
    strategy.train_step(loader.next());
  };
  step();
  CHECK(allocations_in(7, step) == 0);
}

TEST_CASE("nor does a step of a split model, or of two groups that split it") {
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  const Sequential model(Conv2d(4, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(8), ReLU(), Dropout(0.2), Dense(4));
  const SoftmaxCrossEntropy loss;
  const auto rank = static_cast<std::size_t>(world().rank()), ranks = static_cast<std::size_t>(world().size());
  const Split split{.parts = std::min<std::size_t>(ranks, 2), .layers = {"conv1=columns", "dense2=rows"}};
  const BatchPlan plan(40, 16, split.shard(rank, ranks), 2);
  BatchLoader loader(data, SampleOrder(40, 1, true), plan);
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.strategy = split;
  options.clip_norm = 1;
  options.ema_decay = 0.9;
  SplitStrategy strategy(world().communicator(), model, loss, make_optimizer({.name = "adam"}),
                         Schedule({.learning_rate = 0.01}), options);
  const auto step = [&] {
    strategy.accumulate(loader.next());
    strategy.train_step(loader.next());
  };
  step();
  CHECK(allocations_in(7, step) == 0);
}

TEST_CASE("a step on a device allocates nothing after the first two, replayed or call by call") {
  const MemoryDataset data = toy_images(40, {9, 7, 1}, 4);
  for (const auto way : {AllreduceAlgorithm::staged, AllreduceAlgorithm::nccl}) {
    const Devices devices(world().communicator(), way);
    for (const bool record : {true, false}) {
      const bool keep_data = record;
      const std::size_t in_flight = keep_data ? 3 : 2;
      DeviceRun run(devices, Sequential(Conv2d(4, 3), ReLU(), MaxPool2d(2), Flatten(), Dense(8), ReLU(), Dense(4)),
                    data,
                    {.global_batch = 16,
                     .optimizer = "adam",
                     .clip_norm = 1,
                     .record = record,
                     .keep_data = keep_data,
                     .in_flight = in_flight,
                     .ahead = !keep_data});
      run.steps_ahead(8);
      std::size_t begun = 0;
      const auto step = [&] {
        if (begun++ >= in_flight) run.strategy.finish_step();
        run.strategy.begin_step(run.loader.next());
      };
      CHECK(allocations_in(9, step) == 0);  // over the end of an epoch
    }
  }
}
