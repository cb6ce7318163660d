#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include <ronda/layers/layers.hpp>

namespace ronda::test {

/// As batch normalisation, a layer that keeps something from step to step: the running mean of its inputs (N,
/// features). Evaluating subtracts it; training passes the inputs on.
class RunningMean final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "running_mean"; }
  Value build(Value x, GraphBuilder& b) const override {
    const auto means = b.state(*this, "mean", {x.shape[1]});
    const auto counted = b.state(*this, "steps", {1}, DType::int64, 0, Scope::replicated);
    return b.apply(std::make_shared<Loops>(), {x}, {}, {means, counted}, this);
  }

 private:
  class Loops final : public CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "running_mean"; }
    [[nodiscard]] Shape output(std::span<const Shape> inputs) const override { return inputs[0]; }
    void forward(const CustomArguments& arguments, const Pass& pass) const override {
      const auto x = arguments.input();
      const auto y = arguments.output(), means = arguments.state();
      const std::size_t features = means.size();
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = pass.mode == Mode::training ? x[i] : x[i] - means[i % features];
      if (pass.mode != Mode::training) return;
      for (float& mean : means) mean *= 0.9F;
      for (std::size_t i = 0; i < x.size(); ++i)
        means[i % features] += 0.1F * x[i] * static_cast<float>(features) / static_cast<float>(x.size());
      ++arguments.state<std::int64_t>(1)[0];
    }
    void backward(const CustomArguments& arguments, const Pass&) const override {
      const auto dy = arguments.output_gradient();
      const auto dx = arguments.input_gradient();
      if (!dx.empty()) std::copy(dy.begin(), dy.end(), dx.begin());
    }
  };
};

/// What a strategy's only running mean has on this rank.
template <class Strategy>
std::vector<float> running_means(Strategy& strategy) {
  struct Means final : StateVisitor {
    void visit(const State& state) override {
      if (state.name == "running_mean1.mean")
        values.assign(state.tensor.as<float>().begin(), state.tensor.as<float>().end());
    }
    std::vector<float> values;
  } means;
  strategy.visit(means);
  return means.values;
}

}  // namespace ronda::test
