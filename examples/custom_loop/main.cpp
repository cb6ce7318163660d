// A training loop of one's own, with a layer, a loss and a metric of one's own: the task of first_program.
#include <ronda/ronda.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <random>

#include "hinge_loss.hpp"
#include "prelu.hpp"

using namespace ronda;

constexpr std::size_t classes = 3, global_batch = 100;

/// Random points, and the ring around the origin that each lies in. The same on every rank.
MemoryDataset points(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> coordinate(-1, 1);
  std::vector<float> positions;
  std::vector<std::int32_t> rings;
  for (std::size_t i = 0; i < count; ++i) {
    const float x = coordinate(random), y = coordinate(random);
    positions.insert(positions.end(), {x, y});
    rings.push_back(static_cast<std::int32_t>(std::hypot(x, y) / 0.5F));
  }
  return {positions, {2}, rings};
}

/// This rank's part of each global batch of `data`, epoch after epoch.
BatchLoader load(const World& world, const Dataset& data, bool shuffle) {
  return {data, SampleOrder(data.size(), 1, shuffle),
          BatchPlan(data.size(), global_batch, shard_of(world.communicator()))};
}

/// The model's replica on this rank: plans model and loss, takes their memory, sets the initial parameters.
MirroredStrategy mirror(const World& world, const Layer& model, const Loss& loss, const BatchLoader& loader,
                        const Dataset& data, const Picks& picks = {}) {
  MirroredOptions options = MirroredOptions::for_data(data, loader.plan());
  options.threads = world.threads();
  options.picks = picks;
  return {
      world.communicator(), model, loss, make_optimizer({.name = "adam"}), Schedule({.learning_rate = 0.01}), options};
}

/// What MirroredStrategy::train_step does, spelled out. Between any two lines is room for what one wants to do there.
StepResult step_by_hand(MirroredStrategy& strategy, const Batch& batch) {
  const Pass pass = strategy.begin_pass(batch);
  strategy.forward(batch, pass);                     // returns this rank's outputs
  strategy.loss(batch, pass);                        // returns the loss's gradient, which may be changed
  strategy.backward(pass);                           // sends each gradient on its way as soon as it is complete
  const StepControl& total = strategy.reduce(pass);  // from here on gradients are sums over all ranks
  return strategy.apply(total, pass);                // divides by the total weight: exact means
}

/// A metric of one's own: of each class, the share that is recognised. Every rank counts its own samples; then the
/// counts are summed over all ranks.
std::array<double, classes> recall(MirroredStrategy& strategy, BatchLoader& loader) {
  std::array<double, 2 * classes> counts{};  // samples of each class, and those of them that were recognised
  strategy.evaluate(loader, [&](const Batch& batch, const Tensor& outputs) {
    const auto labels = batch.target().as<const std::int32_t>();
    for (std::size_t n = 0; n < batch.real(); ++n) {  // rows beyond the real ones only fill up the batch
      const auto x = outputs.as<const float>().subspan(n * classes, classes);
      const auto label = static_cast<std::size_t>(labels[n]);
      counts[label] += 1;
      if (std::ranges::max_element(x) - x.begin() == labels[n]) counts[classes + label] += 1;
    }
  });
  strategy.communicator().allreduce(Tensor(std::span(counts)));
  std::array<double, classes> shares{};
  for (std::size_t c = 0; c < classes; ++c) shares[c] = counts[classes + c] / counts[c];
  return shares;
}

/// Own layers, own loss, own metric, own loop.
void train(const World& world, const Dataset& data, const Dataset& test) {
  const Sequential model(Dense(32), PReLU(), Residual(Sequential(Dense(32), PReLU())), Dense(classes));
  const HingeLoss loss;
  BatchLoader loader = load(world, data, true), test_loader = load(world, test, false);
  MirroredStrategy strategy = mirror(world, model, loss, loader, data);
  for (int epoch = 1; epoch <= 5; ++epoch) {
    double sum = 0;
    for (std::size_t k = 0; k < loader.plan().steps_per_epoch(); ++k) sum += step_by_hand(strategy, loader.next()).loss;
    const auto shares = recall(strategy, test_loader);
    if (world.rank() > 0) continue;  // all ranks know the same; one says it
    std::cout << "epoch " << epoch << ": loss " << sum / static_cast<double>(loader.plan().steps_per_epoch())
              << ", recall";
    for (const double share : shares) std::cout << " " << 100 * share << " %";
    std::cout << std::endl;
  }
}

/// Whether the loop above and train_step leave the same parameters, to the bit.
bool same_bits(const World& world, const Dataset& data) {
  const Sequential model(Dense(32), ReLU(), Dense(classes));
  const SoftmaxCrossEntropy loss;
  BatchLoader loader = load(world, data, true), loader_by_hand = load(world, data, true);
  MirroredStrategy strategy = mirror(world, model, loss, loader, data);
  // What the first chose by timing the second takes over: another choice may round in another way.
  MirroredStrategy by_hand = mirror(world, model, loss, loader_by_hand, data, strategy.picks());
  for (int k = 0; k < 50; ++k) {
    strategy.train_step(loader.next());
    step_by_hand(by_hand, loader_by_hand.next());
  }
  return strategy.parameter_hash() == by_hand.parameter_hash();
}

int main(int argc, char** argv) {
  return launch(argc, argv, [](World& world) {
    const MemoryDataset data = points(20'000, 1), test = points(2'000, 2);
    train(world, data, test);
    check_gradients(PReLU(), {4, 5});  // against finite differences
    const bool same = same_bits(world, data);
    if (world.rank() == 0)
      std::cout << "by hand and by train_step: " << (same ? "the same bits" : "different parameters") << std::endl;
    return same ? 0 : 1;
  });
}
