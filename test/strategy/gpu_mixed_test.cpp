// Trainings in half types on a GPU, or on a GPU a rank. Needs a GPU.
#include <cmath>

#include "strategy/gpu_run.hpp"
#include "support/catch.hpp"
#include "support/ranks.hpp"

using namespace ronda;
using namespace ronda::test;

namespace {

constexpr Precision mixed[] = {Precision::mixed_bfloat16, Precision::mixed_float16};

Set on_gpu(Precision precision) {
  pretend_hosts();
  return {.gpu = true, .optimizer = "nesterov", .precision = precision};
}

/// A loss scale that the first gradients bear, so that no step is spent on finding it.
void set_scale(MirroredStrategy& strategy, float scale) {
  struct Visitor final : StateVisitor {
    void visit(const State& state) override {
      if (state.name == "loss_scale") copy_now(&value, state.tensor.data(), sizeof value, state.tensor.device());
    }
    float value = 0;
  } visitor;
  visitor.value = scale;
  strategy.visit(visitor);
}

}  // namespace

TEST_CASE("an MLP and a CNN learn in half types as in float32") {
  const MemoryDataset flat = toy_images(480, {8, 8, 1}, 10), images = toy_images(480, {14, 14, 4}, 10);
  const std::size_t steps = world().size() == 1 ? 200 : 24;  // on one GPU several ranks are slow
  Run exact_mlp(mlp(), flat, on_gpu(Precision::float32)), exact_cnn(cnn(), images, on_gpu(Precision::float32));
  const double mlp_loss = exact_mlp.steps(steps), cnn_loss = exact_cnn.steps(steps);
  for (const Precision precision : mixed) {
    INFO(name_of(precision));
    Run a(mlp(), flat, on_gpu(precision)), b(cnn(), images, on_gpu(precision));
    CHECK(a.parameters() == Run(mlp(), flat, on_gpu(Precision::float32)).parameters());  // the same masters at first
    set_scale(a.strategy, 256);
    set_scale(b.strategy, 256);
    CHECK(a.steps(steps) == Approx(mlp_loss).epsilon(0.05));
    CHECK(b.steps(steps) == Approx(cnn_loss).epsilon(0.1));
    CHECK(b.strategy.updates() + 10 >= steps);         // float16 may have to find its scale first
    CHECK_FALSE(b.strategy.parameter_hash().empty());  // throws where replicas differ
    const Evaluation one = exact_cnn.strategy.evaluate(exact_cnn.loader), other = b.strategy.evaluate(b.loader);
    CHECK(other.metric == Approx(one.metric).margin(0.05));
  }
}

TEST_CASE("replayed steps in half types have the bits of steps given call by call") {
  const MemoryDataset data = toy_images(480, {14, 14, 4}, 10);
  for (const Precision precision : mixed) {
    Set set = on_gpu(precision);
    Run replayed(cnn(), data, set);
    set.record = false;
    set.picks = replayed.strategy.picks();
    Run given(cnn(), data, set);
    REQUIRE(given.strategy.plan_hash() == replayed.strategy.plan_hash());
    CHECK(replayed.steps(12) == given.steps(12));
    CHECK(replayed.parameters() == given.parameters());
  }
}

TEST_CASE("a gradient beyond float16 on one rank: no rank applies the step, and the scale is halved") {
  const MemoryDataset data = toy_images(480, {8, 8, 1}, 10);
  Run run(mlp(), data, on_gpu(Precision::mixed_float16));
  set_scale(run.strategy, 256);
  run.steps(12);
  const auto before = run.parameters();
  const std::uint64_t updates = run.strategy.updates();
  const Batch& usual = run.loader.next();
  const double scale = run.strategy.train_step(usual).loss_scale;
  const auto after = run.parameters();
  CHECK(run.strategy.updates() == updates + 1);
  CHECK(after != before);
  const Batch& batch = run.loader.next();
  if (world().rank() + 1 == world().size()) batch.weights().pointer<float>()[0] = 1e9F;  // the loss stays finite
  const StepResult result = run.strategy.train_step(batch);
  CHECK(std::isfinite(result.loss));
  CHECK(result.overflow);
  CHECK_FALSE(result.nonfinite);
  CHECK(result.loss_scale == scale / 2);
  CHECK(run.parameters() == after);
  CHECK(run.strategy.updates() == updates + 1);
}
