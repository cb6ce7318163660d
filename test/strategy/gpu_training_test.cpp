// A training on a GPU follows the processor's. Needs a GPU.
#include "strategy/gpu_run.hpp"
#include "support/catch.hpp"

using namespace ronda;
using namespace ronda::test;

TEST_CASE("a GPU starts from the processor's parameters, to the bit") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  CHECK(Run(cnn(), data, {.gpu = true}).parameters() == Run(cnn(), data, {}).parameters());
}

TEST_CASE("100 steps of an MLP on a GPU follow the processor's, for every optimizer, with and without clipping") {
  const MemoryDataset data = toy_images(500, {8, 8, 1}, 10);
  for (const char* optimizer : {"sgd", "nesterov", "adamw", "lars", "rmsprop", "lamb"})
    for (const double clip : {0.0, 0.5}) {
      Run cpu(mlp(), data, {.optimizer = optimizer, .clip_norm = clip});
      Run gpu(mlp(), data, {.gpu = true, .optimizer = optimizer, .clip_norm = clip});
      INFO(optimizer << ", clip " << clip);
      CHECK(gpu.steps(100) == Approx(cpu.steps(100)).epsilon(1e-4));
      CHECK(relative_distance(gpu.parameters(), cpu.parameters()) < 1e-4);  // roundings, as between numbers of ranks
      CHECK(gpu.strategy.updates() == cpu.strategy.updates());
      const Evaluation a = cpu.strategy.evaluate(cpu.loader), b = gpu.strategy.evaluate(gpu.loader);
      CHECK(b.loss == Approx(a.loss).epsilon(1e-3).margin(1e-6));  // some are as good as 0 by now
      CHECK(b.metric == Approx(a.metric).margin(2.0 / 500));
    }
}

TEST_CASE("50 steps of a CNN on a GPU follow the processor's; 300 learn as well") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  Run cpu(cnn(), data, {}), gpu(cnn(), data, {.gpu = true});
  CHECK(gpu.steps(50) == Approx(cpu.steps(50)).epsilon(5e-3));
  CHECK(relative_distance(gpu.parameters(), cpu.parameters()) < 5e-3);  // a ReLU or a tie may fall the other way
  CHECK(gpu.steps(250) == Approx(cpu.steps(250)).epsilon(0.1));
}

TEST_CASE("tf32 learns as well") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  Run exact(cnn(), data, {.gpu = true}), rounded(cnn(), data, {.gpu = true, .precision = Precision::tf32});
  CHECK(rounded.steps(60) == Approx(exact.steps(60)).epsilon(0.1));
}

TEST_CASE("the parts of a step on a GPU, called by hand, give the bits of train_step") {
  const MemoryDataset data = toy_images(500, {8, 8, 1}, 10);
  Run whole(mlp(), data, {.gpu = true}), parts(mlp(), data, {.gpu = true, .picks = whole.strategy.picks()});
  REQUIRE(parts.strategy.plan_hash() == whole.strategy.plan_hash());
  for (int i = 0; i < 5; ++i) {
    const StepResult expected = whole.strategy.train_step(whole.loader.next());
    const Batch& batch = parts.strategy.place(parts.loader.next());
    const Pass pass = parts.strategy.begin_pass(batch);
    parts.strategy.forward(batch, pass);
    parts.strategy.loss(batch, pass);
    parts.strategy.backward(pass);
    const StepResult found = parts.strategy.apply(parts.strategy.reduce(pass), pass);
    CHECK(found.loss == expected.loss);
    CHECK(found.weight == expected.weight);
  }
  CHECK(parts.parameters() == whole.parameters());
}

TEST_CASE("a loss that is not finite leaves a GPU's parameters alone") {
  const MemoryDataset data = toy_images(500, {8, 8, 1}, 10);
  Run gpu(mlp(), data, {.gpu = true});
  const auto before = gpu.parameters();
  const Batch& batch = gpu.loader.next();
  batch.target().pointer<std::int32_t>()[3] = 10;  // no such class
  const StepResult result = gpu.strategy.train_step(batch);
  CHECK(result.nonfinite);
  CHECK(gpu.strategy.updates() == 0);
  CHECK(gpu.parameters() == before);
}
