#pragma once
#include <ronda/core/error.hpp>
#include <ronda/ronda.hpp>

#include <algorithm>

/// A loss of one's own: Σ max(0, x[c] − x[label] + 1) over the wrong classes c, which asks the right class to lead by 1
/// (Weston and Watkins, "Support vector machines for multi-class pattern recognition", ESANN 1999).
class HingeLoss final : public ronda::Loss {
 public:
  void plan(const ronda::TensorDesc& outputs, ronda::Planner& planner) override {
    if (outputs.shape.rank() != 2 || !ronda::same_bytes(outputs, {outputs.shape, ronda::DType::float32, {}}))
      throw ronda::InputError("this loss takes plain float32 (N, classes), not " + outputs.text());
    desc_ = outputs;
    gradient_id_ = planner.buffer("hinge loss gradient", desc_.bytes(), ronda::Lifetime::gradient);
  }
  ronda::Metric metric() const override { return {"accuracy", true}; }
  void bind(const ronda::Bindings& bindings) override { gradient_ = bindings.tensor(gradient_id_, desc_); }

  const ronda::Tensor& forward_backward(const ronda::Tensor& outputs, const ronda::Tensor& target,
                                        const ronda::Pass& pass) override {
    run(outputs, target, pass);
    return gradient_;
  }
  void forward(const ronda::Tensor& outputs, const ronda::Tensor& target, const ronda::Pass& pass) override {
    run(outputs, target, pass);
  }

 private:
  /// Sums, never means: Ronda divides by the weight of the whole global batch, of which this rank sees a part. A row
  /// that only fills up the batch has weight 0 and so counts for nothing.
  void run(const ronda::Tensor& outputs, const ronda::Tensor& target, const ronda::Pass& pass) const {
    const auto classes = static_cast<std::size_t>(desc_.shape[1]);
    const auto labels = target.as<const std::int32_t>();
    const auto weights = pass.weights->as<const float>();
    std::ranges::fill(gradient_.as<float>(), 0.0F);
    for (std::size_t n = 0; n < labels.size(); ++n) {
      const auto x = outputs.as<const float>().subspan(n * classes, classes);
      const auto dx = gradient_.as<float>().subspan(n * classes, classes);
      const auto label = static_cast<std::size_t>(labels[n]);
      const float one = weights[n] * pass.loss_scale;
      float loss = 0;
      for (std::size_t c = 0; c < classes; ++c) {
        const float lack = x[c] - x[label] + 1;
        if (c == label || lack <= 0) continue;
        loss += lack;
        dx[c] += one;
        dx[label] -= one;
      }
      pass.control->loss += weights[n] * loss;
      pass.control->weight += weights[n];
      if (std::ranges::max_element(x) - x.begin() == labels[n]) pass.control->metric += weights[n];
    }
  }

  ronda::TensorDesc desc_;
  ronda::BufferId gradient_id_{};
  ronda::Tensor gradient_;
};
