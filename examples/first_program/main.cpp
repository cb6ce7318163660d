// Learns in which of three rings around the origin a point of the plane lies.
#include <ronda/ronda.hpp>

#include <cmath>
#include <iostream>
#include <random>

using namespace ronda;

/// Random points, and the ring that each lies in. Every rank makes the same ones; Ronda gives each its share of a
/// batch.
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

int main(int argc, char** argv) {
  return launch(argc, argv, [](World& world) {
    Sequential model(Dense(32), ReLU(), Dense(32), ReLU(), Dense(3));
    SoftmaxCrossEntropy loss;
    Trainer trainer(world, model, loss, {.epochs = 10, .optimizer = {.name = "adam"}, .learning_rate = 0.01});
    const Evaluation result = trainer.fit(points(20'000, 1), points(2'000, 2));
    if (world.rank() == 0) std::cout << "test accuracy " << 100 * result.metric << " %\n";
    return 0;
  });
}
