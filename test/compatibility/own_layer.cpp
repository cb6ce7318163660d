#include <algorithm>
#include <memory>

#include "check.hpp"

namespace compatibility {
namespace {

using namespace ronda;

/// a · x, with a slope for each feature; counts its forward passes.
class Scaled final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "scaled"; }
  Value build(Value x, GraphBuilder& b) const override {
    if (x.shape.rank() != 2) throw InputError("Scaled takes (N, features), not " + x.shape.text());
    const auto slope = b.parameter(*this, "weight", {x.shape[1]}, {.initializer = Initializer::ones});
    const auto passes = b.state(*this, "passes", {1}, DType::float32, 0, Scope::replicated);
    return b.apply(std::make_shared<Loops>(), {x}, {slope}, {passes}, this);
  }

 private:
  class Loops final : public CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "scaled"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    void forward(const CustomArguments& arguments, const Pass& pass) const override {
      const auto x = arguments.input(), a = arguments.parameter();
      const auto y = arguments.output();
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = a[i % a.size()] * x[i];
      if (pass.mode == Mode::training) arguments.state()[0] += 1;
    }
    void backward(const CustomArguments& arguments, const Pass&) const override {
      const auto x = arguments.input(), a = arguments.parameter(), dy = arguments.output_gradient();
      const auto da = arguments.parameter_gradient(), dx = arguments.input_gradient();
      std::ranges::fill(da, 0.0F);
      for (std::size_t i = 0; i < x.size(); ++i) da[i % da.size()] += x[i] * dy[i];
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = a[i % a.size()] * dy[i];
    }
  };
};

}  // namespace

void own_layer(World& world) {
  check_gradients(Scaled(), {4, 5});
  const Sequential model(
      Dense(6), Scaled(),
      [](Value x, GraphBuilder& b) {
        const Value y = ReLU().build(Dense(6).build(x, b), b);
        return b.apply(AddSpec{}, {x, y});
      },
      Residual(Sequential(Dense(6), Scaled())), Concat(Dense(3), Dense(3)), Dense(2));
  const SoftmaxCrossEntropy loss;
  Trainer trainer(
      world, model, loss,
      {.steps = 60, .global_batch_size = 20, .optimizer = {.name = "adam"}, .learning_rate = 0.02, .threads = 1});
  require(trainer.fit(points(200), points(60)).metric > 0.8, "a model of own layers that learns");
  bool found = false;
  for (const Parameter& parameter : trainer.strategy().parameters())
    found = found || parameter.name == "scaled2.weight";
  require(found, "layers that are numbered in the order of their use");
}

}  // namespace compatibility
