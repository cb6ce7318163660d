// Weights without gradients: their momentum shrinks, and ends at zero instead of becoming denormal.
#include "support/catch.hpp"
#include "support/ranks.hpp"

#include <ronda/core/denormals.hpp>
#include <ronda/core/parallel.hpp>
#include <ronda/data/memory_dataset.hpp>
#include <ronda/layers/layers.hpp>
#include <ronda/optim/make_optimizer.hpp>
#include <ronda/runtime/strategy/mirrored/mirrored_strategy.hpp>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace ronda;

namespace denormal_test {
namespace {

constexpr std::size_t samples = 4, numbers = 40;

/// The second half of the numbers is there in the first batch alone.
MemoryDataset fading_data(std::size_t batches) {
  std::vector<float> inputs(batches * samples * numbers);
  std::vector<std::int32_t> labels(batches * samples);
  for (std::size_t n = 0; n < batches * samples; ++n) {
    labels[n] = static_cast<std::int32_t>(n % 3);
    for (std::size_t i = 0; i < (n < samples ? numbers : numbers / 2); ++i)
      inputs[n * numbers + i] = static_cast<float>((n * 7 + i * 3) % 11) / 11;
  }
  return {std::move(inputs), Shape{numbers}, std::move(labels)};
}

/// Passes on what it is given, and notes which threads take denormal numbers for zero meanwhile.
class Witness final : public CustomOperation {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "witness"; }
  [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
  void forward(const CustomArguments& arguments, const Pass&) const override {
    look();
    std::ranges::copy(arguments.input(), arguments.output().begin());
  }
  void backward(const CustomArguments& arguments, const Pass&) const override {
    look();
    const auto dx = arguments.input_gradient();
    std::copy_n(arguments.output_gradient().begin(), dx.size(), dx.begin());
  }

  int threads = 1;
  mutable std::atomic<int> exact{0};  ///< threads that were seen to compute with them

 private:
  void look() const {
#pragma omp parallel num_threads(threads)
    exact += DenormalScope::flushes() ? 0 : 1;
  }
};

class DenormalCount final : public StateVisitor {
 public:
  void visit(const State& state) override {
    if (state.tensor.dtype() != DType::float32) return;
    const auto* values = state.tensor.pointer<float>();
    for (std::size_t i = 0; i < state.tensor.desc().bytes() / sizeof(float); ++i)
      if (std::fpclassify(values[i]) == FP_SUBNORMAL) ++count;
  }
  std::size_t count = 0;
};

int threads_that_flush(int threads) {
  std::atomic<int> flush{0};
#pragma omp parallel num_threads(threads)
  flush += DenormalScope::flushes() ? 1 : 0;
  return flush;
}

struct Case {
  std::string optimizer;
  int threads;
  bool by_parts;  ///< each rank updates its part, as of a large model
};

}  // namespace

#if defined(__x86_64__) || defined(__aarch64__)
TEST_CASE("a training leaves no denormal number in its state, and the caller's threads as they were") {
  constexpr std::size_t steps = 1200;  // 0.9^1200 is 1e-55
  const Case given = GENERATE(Case{"momentum", 1, false}, Case{"nesterov", 2, true}, Case{"adam", 2, false});
  INFO(given.optimizer << " with " << given.threads << " threads");
  const MemoryDataset data = fading_data(steps);
  Communicator communicator = test::world().communicator();
  const auto witness = std::make_shared<Witness>();
  witness->threads = given.threads;
  const Sequential model(Dense(16), ReLU(), Dense(3),
                         [witness](Value x, GraphBuilder& b) { return b.apply(witness, {x}); });
  SoftmaxCrossEntropy loss;
  const BatchPlan plan(data.size(), samples, shard_of(communicator));
  BatchLoader loader(data, SampleOrder(data.size(), 1, false), plan);
  MirroredOptions options = MirroredOptions::for_data(data, plan);
  options.threads = given.threads;
  if (given.by_parts) options.node_update_bytes = 0;
  OptimizerOptions optimizer{.name = given.optimizer};
  if (given.optimizer == "adam") optimizer.beta2 = 0.9;
  MirroredStrategy strategy(communicator, model, loss, make_optimizer(optimizer), Schedule({.learning_rate = 0.01}),
                            options);
  for (std::size_t step = 0; step < steps; ++step) strategy.train_step(loader.next());
  strategy.state().gather_state();
  DenormalCount denormals;
  strategy.visit(denormals);
  CHECK(denormals.count == 0);

  loader.seek(1);
  const Batch& one = loader.next();
  const Pass pass = strategy.begin_pass(one);
  strategy.forward(one, pass);
  CHECK(threads_that_flush(given.threads) == 0);
  strategy.loss(one, pass);
  strategy.backward(pass);
  CHECK(threads_that_flush(given.threads) == 0);
  strategy.apply(strategy.reduce(pass), pass);
  CHECK(threads_that_flush(given.threads) == 0);
  CHECK(witness->exact == 0);
}
#endif

}  // namespace denormal_test
