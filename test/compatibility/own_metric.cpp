#include <algorithm>
#include <cmath>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

/// Samples of each class, as a row of a matrix, and the share of the first.
class ClassCounts final : public SummedMetric {
 public:
  [[nodiscard]] std::size_t sums(const Shape& outputs) const override {
    return static_cast<std::size_t>(outputs[outputs.rank() - 1]);
  }
  void add(const Tensor&, const Tensor& targets, std::span<const float> weights,
           std::span<double> sums) const override {
    const auto labels = targets.as<const std::int32_t>();
    for (std::size_t n = 0; n < labels.size(); ++n) sums[static_cast<std::size_t>(labels[n])] += weights[n];
  }
  [[nodiscard]] std::vector<MetricValue> values(std::span<const double> sums) const override {
    return {{.metric = {"first", true}, .values = {sums[0] / (sums[0] + sums[1])}},
            {.metric = {"counts", false}, .values = {sums.begin(), sums.end()}, .shape = {1, 2}}};
  }
};

}  // namespace

void own_metric(World& world) {
  const Sequential model(Dense(2));
  const SoftmaxCrossEntropy loss;
  Trainer trainer(world, model, loss, {.steps = 3, .learning_rate = 0.1, .threads = 1});
  trainer.add(ClassCounts());
  trainer.add(ConfusionMatrix());
  const Evaluation result = trainer.fit(points(101), points(101));
  require(std::abs(number_of(result.metrics, "first") - 51.0 / 101) < 1e-9, "sums over all ranks");
  require(result.metrics.size() == 3 && !result.metrics[1].is_number(), "a metric that is a matrix");
}

}  // namespace compatibility
