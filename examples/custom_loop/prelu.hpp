#pragma once
#include <ronda/ronda.hpp>

#include <algorithm>
#include <memory>

/// A layer of one's own: max(x, 0) + a · min(x, 0), with a learned slope a for each feature (He et al., "Delving deep
/// into rectifiers", ICCV 2015). Starts as a ReLU, with slopes of zero.
class PReLU final : public ronda::Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "prelu"; }
  ronda::Value build(ronda::Value x, ronda::GraphBuilder& b) const override {
    if (x.shape.rank() != 2) throw ronda::InputError("this PReLU takes (N, features), not " + x.shape.text());
    const auto slope = b.parameter(*this, "weight", {x.shape[1]}, {.initializer = ronda::Initializer::zeros});
    return b.apply(std::make_shared<Loops>(), {x}, {slope}, {}, this);
  }

 private:
  class Loops final : public ronda::CustomOperation {
   public:
    [[nodiscard]] std::string_view kind() const noexcept override { return "prelu"; }
    [[nodiscard]] ronda::Shape output(std::span<const ronda::Shape> inputs) const override { return inputs[0]; }

    void forward(const ronda::CustomArguments& arguments, const ronda::Pass&) const override {
      const auto x = arguments.input(), a = arguments.parameter();
      const auto y = arguments.output();
      for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] > 0 ? x[i] : a[i % a.size()] * x[i];
    }

    void backward(const ronda::CustomArguments& arguments, const ronda::Pass&) const override {
      const auto x = arguments.input(), a = arguments.parameter(), dy = arguments.output_gradient();
      const auto da = arguments.parameter_gradient(), dx = arguments.input_gradient();
      std::ranges::fill(da, 0.0F);  // the memory holds the last step's sums
      for (std::size_t i = 0; i < x.size(); ++i) da[i % da.size()] += std::min(x[i], 0.0F) * dy[i];
      for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = x[i] > 0 ? dy[i] : a[i % a.size()] * dy[i];
    }
  };
};
