// Several ranks train on GPUs as one does, by NCCL and through the host. Needs a GPU, which all of them share where
// there are no more: as good for this as one each, and very slow.
#include <ronda/core/cuda/stream.hpp>

#include "strategy/gpu_run.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

Communicator alone() { return world().communicator().split(world().rank(), 0); }

}  // namespace

TEST_CASE("ranks on GPUs train what one rank on one does") {
  pretend_hosts();
  const MemoryDataset data = toy_images(140, {14, 14, 4}, 10);
  for (const auto way : {AllreduceAlgorithm::nccl, AllreduceAlgorithm::staged}) {
    INFO(name_of(way));
    Run one(alone(), cnn(), data, {.gpu = true}), many(cnn(), data, {.gpu = true, .way = way});
    CHECK(many.strategy.exchange().report().buckets.size() > 1);
    CHECK(many.strategy.exchange().report().buckets[0].algorithm == name_of(way));
    CHECK(many.parameters() == one.parameters());
    for (int k = 0; k < 8; ++k) {  // call by call, recorded, replayed; the third batch of an epoch is short
      const StepResult a = one.strategy.train_step(one.loader.next()), b = many.strategy.train_step(many.loader.next());
      CHECK(b.weight == a.weight);
      CHECK(b.loss == Approx(a.loss).epsilon(1e-3));
    }
    CHECK(relative_distance(many.parameters(), one.parameters()) < 5e-3);  // a ReLU or a tie may fall the other way
    CHECK_FALSE(many.strategy.parameter_hash().empty());                   // throws where replicas differ
    const Evaluation a = one.strategy.evaluate(one.loader), b = many.strategy.evaluate(many.loader);
    CHECK(b.loss == Approx(a.loss).epsilon(1e-2));
  }
}

TEST_CASE("a replay with NCCL inside has the bits of steps that are given call by call") {
  pretend_hosts();
  const MemoryDataset data = toy_images(140, {8, 8, 1}, 10);
  const Set set{.gpu = true, .clip_norm = 1, .way = AllreduceAlgorithm::nccl};
  Set eager = set;
  eager.record = false;
  Run replayed(mlp(), data, set);
  eager.picks = replayed.strategy.picks();
  Run given(mlp(), data, eager);
  REQUIRE(given.strategy.plan_hash() == replayed.strategy.plan_hash());
  for (int k = 0; k < 8; ++k)
    CHECK(replayed.strategy.train_step(replayed.loader.next()).loss ==
          given.strategy.train_step(given.loader.next()).loss);
  CHECK(replayed.parameters() == given.parameters());
}

TEST_CASE("the host waits once a step, at its end, where NCCL connects the GPUs") {
  pretend_hosts();
  const MemoryDataset data = toy_images(140, {8, 8, 1}, 10);
  Run run(mlp(), data, {.gpu = true, .way = AllreduceAlgorithm::nccl});
  run.steps(3);
  const std::uint64_t before = cuda::gpu_stream(*run.device.stream).host_waits();
  run.steps(4);
  CHECK(cuda::gpu_stream(*run.device.stream).host_waits() <= before + 4);
}
