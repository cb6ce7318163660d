#include <algorithm>
#include <cmath>
#include <memory>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

class Hinge final : public Loss {
 public:
  [[nodiscard]] Metric metric() const override { return {"accuracy", true}; }
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives&) const override {
    if (outputs.shape.rank() != 2 || outputs.dtype != DType::float32)
      throw InputError("this loss takes float32 (N, classes), not " + outputs.text());
    return std::make_unique<Loops>();
  }

 private:
  class Loops final : public LossOperation {
   public:
    void run(const Tensor& outputs, const Tensor& target, const Tensor& gradient, std::byte*,
             const Pass& pass) override {
      const auto classes = static_cast<std::size_t>(outputs.shape()[1]);
      const auto labels = target.as<const std::int32_t>();
      const auto weights = pass.weights->as<const float>();
      std::ranges::fill(gradient.as<float>(), 0.0F);
      for (std::size_t n = 0; n < labels.size(); ++n) {
        const auto x = outputs.as<const float>().subspan(n * classes, classes);
        const auto dx = gradient.as<float>().subspan(n * classes, classes);
        const auto label = static_cast<std::size_t>(labels[n]);
        for (std::size_t c = 0; c < classes; ++c) {
          const float lack = x[c] - x[label] + 1;
          if (c == label || lack <= 0) continue;
          pass.control->loss += double{weights[n]} * lack;
          dx[c] += weights[n] * pass.loss_scale;
          dx[label] -= weights[n] * pass.loss_scale;
        }
        pass.control->weight += weights[n];
        if (std::ranges::max_element(x) - x.begin() == labels[n]) pass.control->metric += weights[n];
      }
    }
  };
};

struct LogCosh {
  static constexpr std::string_view name = "log-cosh";
  static Metric metric() { return {"mae", false}; }
  [[nodiscard]] double value(double x, double y, std::size_t) const { return std::log(std::cosh(x - y)); }
  [[nodiscard]] float gradient(float x, float y, std::size_t) const { return std::tanh(x - y); }
  [[nodiscard]] double measure(double x, double y) const { return std::abs(x - y); }
};

}  // namespace

void own_loss(World& world) {
  const Hinge hinge;
  const Sequential model(Dense(8), ReLU(), Dense(2));
  Trainer trainer(
      world, model, hinge,
      {.steps = 60, .global_batch_size = 20, .optimizer = {.name = "adam"}, .learning_rate = 0.05, .threads = 1});
  require(trainer.fit(points(200), points(60)).metric > 0.9, "a loss of one's own that trains");

  std::vector<float> inputs, targets;
  for (int i = 0; i < 100; ++i) {
    inputs.push_back(static_cast<float>(i % 21) / 10 - 1);
    targets.push_back(0.5F * inputs.back() + 0.25F);
  }
  const MemoryDataset line(inputs, {1}, targets, {1});
  const ElementwiseLoss<LogCosh> loss;
  const Sequential dense(Dense(1));
  Trainer regression(world, dense, loss, {.epochs = 40, .global_batch_size = 20, .learning_rate = 0.2, .threads = 1});
  require(regression.fit(line, line).metric < 0.05, "a loss of each output that trains");
}

}  // namespace compatibility
