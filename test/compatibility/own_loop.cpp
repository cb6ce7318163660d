#include <array>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

StepResult step_by_hand(MirroredStrategy& strategy, const Batch& batch) {
  const Pass pass = strategy.begin_pass(batch);
  strategy.forward(batch, pass);
  strategy.loss(batch, pass);
  strategy.backward(pass);
  const StepControl& total = strategy.reduce(pass);
  return strategy.apply(total, pass);
}

BatchLoader load(const World& world, const Dataset& data, bool shuffle) {
  return {data, SampleOrder(data.size(), 1, shuffle), BatchPlan(data.size(), 50, shard_of(world.communicator()))};
}

}  // namespace

void own_loop(World& world) {
  const MemoryDataset data = points(500);
  const Sequential model(Dense(8), ReLU(), Dense(2));
  const SoftmaxCrossEntropy loss;
  BatchLoader loader = load(world, data, true), tests = load(world, data, false);
  MirroredOptions options = MirroredOptions::for_data(data, loader.plan());
  options.threads = 1;
  MirroredStrategy strategy(world.communicator(), model, loss, make_optimizer({.name = "adam"}),
                            Schedule({.learning_rate = 0.05}), options);
  const double first = strategy.train_step(loader.next()).loss;
  double last = first;
  for (std::size_t k = 1; k < 4 * loader.plan().steps_per_epoch(); ++k)
    last = step_by_hand(strategy, loader.next()).loss;
  require(last < first / 2, "a smaller loss");
  require(strategy.updates() == 40, "an update a step");

  std::array<double, 2> counts{};  // samples, and correct samples
  const Evaluation result = strategy.evaluate(tests, [&](const Batch& batch, const Tensor& outputs) {
    const auto labels = batch.target().as<const std::int32_t>();
    const auto x = outputs.as<const float>();
    for (std::size_t n = 0; n < batch.real(); ++n) {
      counts[0] += 1;
      counts[1] += (x[2 * n + 1] > x[2 * n] ? 1 : 0) == labels[n] ? 1 : 0;
    }
  });
  strategy.communicator().allreduce(Tensor(std::span(counts)));
  require(counts[0] == 500 && counts[1] / 500 == result.metric, "each sample once, over all ranks");
  require(strategy.parameters().size() == 4 && strategy.parameters()[0].name == "dense1.weight", "parameters by name");
}

}  // namespace compatibility
