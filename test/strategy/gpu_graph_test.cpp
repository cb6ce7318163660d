// A step on a GPU that is recorded once and replayed. Needs a GPU.
#include <ronda/core/cuda/stream.hpp>

#include "strategy/gpu_run.hpp"
#include "support/catch.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("two trainings on a GPU have the same bits") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  Run first(cnn(), data, {.gpu = true});
  Run second(cnn(), data, {.gpu = true, .picks = first.strategy.picks()});
  REQUIRE(second.strategy.plan_hash() == first.strategy.plan_hash());
  const double loss = first.steps(60);
  CHECK(second.steps(60) == loss);
  CHECK(second.parameters() == first.parameters());
}

TEST_CASE("replayed steps have the bits of steps that are given call by call, also after an evaluation") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  for (const char* optimizer : {"nesterov", "adamw"}) {
    Run replayed(cnn(), data, {.gpu = true, .optimizer = optimizer, .clip_norm = 1});
    const Picks picks = replayed.strategy.picks();
    Run eager(cnn(), data, {.gpu = true, .optimizer = optimizer, .clip_norm = 1, .record = false, .picks = picks});
    REQUIRE(eager.strategy.plan_hash() == replayed.strategy.plan_hash());
    for (int round = 0; round < 3; ++round) {
      CHECK(replayed.steps(20) == eager.steps(20));
      const Evaluation a = replayed.strategy.evaluate(replayed.loader), b = eager.strategy.evaluate(eager.loader);
      CHECK(a.loss == b.loss);
    }
    CHECK(replayed.parameters() == eager.parameters());
  }
}

TEST_CASE("the host waits once a step, at its end") {
  const MemoryDataset data = toy_images(500, {8, 8, 1}, 10);
  for (const bool record : {true, false}) {
    Run run(mlp(), data, {.gpu = true, .record = record});
    run.steps(3);
    const std::uint64_t before = cuda::gpu_stream(*run.device.stream).host_waits();
    run.steps(10);
    CHECK(cuda::gpu_stream(*run.device.stream).host_waits() <= before + 10);
  }
}
