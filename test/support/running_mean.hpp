#pragma once
#include <cstdint>
#include <vector>

#include <ronda/layers/layer.hpp>
#include <ronda/layers/planner.hpp>

namespace ronda::test {

/// As batch normalisation, a layer that keeps something from step to step: the running mean of its inputs (N,
/// features). Evaluating subtracts it; training passes the inputs on.
class RunningMean final : public Layer {
 public:
  [[nodiscard]] std::string_view kind() const noexcept override { return "running_mean"; }
  void bind(const Bindings& bindings) override { output_ = bindings.tensor(output_id_, desc_); }
  const Tensor& forward(const Tensor& input, const Pass& pass) override {
    const auto x = input.as<const float>();
    const auto y = output_.as<float>();
    const std::size_t features = means_.size();
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = pass.mode == Mode::training ? x[i] : x[i] - means_[i % features];
    if (pass.mode != Mode::training) return output_;
    for (float& mean : means_) mean *= 0.9F;
    for (std::size_t i = 0; i < x.size(); ++i)
      means_[i % features] += 0.1F * x[i] * static_cast<float>(features) / static_cast<float>(x.size());
    ++steps_[0];
    return output_;
  }
  const Tensor& backward(const Tensor& output_gradient, const Pass&) override { return gradient_ = output_gradient; }
  void visit(StateVisitor& visitor) override {
    visitor.visit({"running_mean.mean", Tensor(std::span(means_))});
    visitor.visit({"running_mean.steps", Tensor(std::span(steps_)), Scope::replicated});
  }
  [[nodiscard]] const std::vector<float>& means() const noexcept { return means_; }

 protected:
  TensorDesc plan(const TensorDesc& input, Planner& planner) override {
    means_.assign(static_cast<std::size_t>(input.shape[1]), 0.0F);
    output_id_ = planner.buffer("running mean output", input.bytes(), Lifetime::pass);
    return desc_ = input;
  }

 private:
  TensorDesc desc_;
  BufferId output_id_{};
  Tensor output_, gradient_;
  std::vector<float> means_;
  std::vector<std::int64_t> steps_ = std::vector<std::int64_t>(1);
};

}  // namespace ronda::test
