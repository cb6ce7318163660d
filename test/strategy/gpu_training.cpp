// A training on a GPU follows the processor's. Needs a GPU.
#include "support/catch.hpp"
#include "support/ranks.hpp"
#include "support/toy_data.hpp"

#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored_strategy.hpp>

#include <string>
#include <vector>

using namespace ronda;
using namespace ronda::test;

namespace {

struct Set {
  bool gpu = false;
  std::string optimizer = "nesterov";
  double clip_norm = 0;
  Precision precision = Precision::float32;
  bool record = true;
};

/// A strategy on one rank, on the processor or on a GPU.
struct Run {
  Run(Sequential m, const MemoryDataset& data, const Set& set)
      : model(std::move(m)),
        plan(data.size(), 48, shard_of(world().communicator()), 1),  // the last batch is short
        loader(data, SampleOrder(data.size(), 1, true), plan),
        strategy(world().communicator(), model, loss, make_optimizer({.name = set.optimizer}),
                 Schedule({.name = "cosine", .learning_rate = 0.02, .total_steps = 300}), options(data, set)) {}

  MirroredOptions options(const MemoryDataset& data, const Set& set) const {
    MirroredOptions o = MirroredOptions::for_data(data, plan);
    o.clip_norm = set.clip_norm;
    if (!set.gpu) return o;
    o.record_steps = set.record;
    o.device = ComputeDevice::on(make_cuda_context(0));
    o.primitives = make_cudnn_primitives(*o.device.context, *o.device.stream, set.precision);
    return o;
  }
  /// The mean loss of so many steps.
  double steps(std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += strategy.train_step(loader.next()).loss;
    return sum / static_cast<double>(count);
  }
  [[nodiscard]] std::vector<float> parameters() const {
    std::vector<float> all;
    for (const auto& p : strategy.parameters()) {
      const auto values = to_file(p, p.value);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  Sequential model;
  SoftmaxCrossEntropy loss;
  BatchPlan plan;
  BatchLoader loader;
  MirroredStrategy strategy;
};

Sequential mlp() { return Sequential(Flatten(), Dense(64), ReLU(), Dense(10)); }
Sequential cnn() {
  return Sequential(Conv2d(16, 3), ReLU(), MaxPool2d(2), Conv2d(16, 3), ReLU(), Flatten(), Dense(10));
}

}  // namespace

TEST_CASE("a GPU starts from the processor's parameters, to the bit") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  CHECK(Run(cnn(), data, {.gpu = true}).parameters() == Run(cnn(), data, {}).parameters());
}

TEST_CASE("100 steps of an MLP on a GPU follow the processor's, for every optimizer, with and without clipping") {
  const MemoryDataset data = toy_images(500, {8, 8, 1}, 10);
  for (const char* optimizer : {"sgd", "nesterov", "adamw"})
    for (const double clip : {0.0, 0.5}) {
      Run cpu(mlp(), data, {.optimizer = optimizer, .clip_norm = clip});
      Run gpu(mlp(), data, {.gpu = true, .optimizer = optimizer, .clip_norm = clip});
      INFO(optimizer << ", clip " << clip);
      CHECK(gpu.steps(100) == Approx(cpu.steps(100)).epsilon(1e-4));
      CHECK(relative_distance(gpu.parameters(), cpu.parameters()) < 1e-4);  // roundings, as between numbers of ranks
      CHECK(gpu.strategy.updates() == cpu.strategy.updates());
      const Evaluation a = cpu.strategy.evaluate(cpu.loader), b = gpu.strategy.evaluate(gpu.loader);
      CHECK(b.loss == Approx(a.loss).epsilon(1e-3));
      CHECK(b.accuracy == Approx(a.accuracy).margin(2.0 / 500));
    }
}

TEST_CASE("50 steps of a CNN on a GPU follow the processor's; 300 learn as well") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  Run cpu(cnn(), data, {}), gpu(cnn(), data, {.gpu = true});
  CHECK(gpu.steps(50) == Approx(cpu.steps(50)).epsilon(5e-3));
  CHECK(relative_distance(gpu.parameters(), cpu.parameters()) < 5e-3);  // a ReLU or a tie may fall the other way
  CHECK(gpu.steps(250) == Approx(cpu.steps(250)).epsilon(0.1));
}

TEST_CASE("two trainings on a GPU have the same bits, replayed or not; tf32 learns as well") {
  const MemoryDataset data = toy_images(500, {14, 14, 4}, 10);
  Run first(cnn(), data, {.gpu = true});
  Run second(cnn(), data, {.gpu = true});
  const double loss = first.steps(60);
  CHECK(second.steps(60) == loss);
  CHECK(second.parameters() == first.parameters());
  Run eager(cnn(), data, {.gpu = true, .record = false});  // call by call, and not replayed
  CHECK(eager.steps(60) == loss);
  CHECK(eager.parameters() == first.parameters());
  CHECK(Run(cnn(), data, {.gpu = true, .precision = Precision::tf32}).steps(60) == Approx(loss).epsilon(0.1));
}

TEST_CASE("the parts of a step on a GPU, called by hand, give the bits of train_step") {
  const MemoryDataset data = toy_images(500, {8, 8, 1}, 10);
  Run whole(mlp(), data, {.gpu = true}), parts(mlp(), data, {.gpu = true});
  for (int i = 0; i < 5; ++i) {
    whole.strategy.train_step(whole.loader.next());
    const Batch& batch = parts.strategy.place(parts.loader.next());
    const Pass pass = parts.strategy.begin_pass(batch);
    const Tensor& outputs = parts.strategy.forward(batch.input(), pass);
    parts.strategy.backward(parts.loss.forward_backward(outputs, batch.target(), pass), pass);
    const double weight = parts.strategy.reduce(pass).weight;
    CHECK(parts.strategy.apply({}, pass).weight == weight);
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
