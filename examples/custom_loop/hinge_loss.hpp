#pragma once
#include <ronda/ronda.hpp>

#include <algorithm>
#include <memory>

/// A loss of one's own: Σ max(0, x[c] − x[label] + 1) over the wrong classes c. It requires a margin of 1
/// (Weston and Watkins, "Support vector machines for multi-class pattern recognition", ESANN 1999).
class HingeLoss final : public ronda::Loss {
 public:
  [[nodiscard]] ronda::Metric metric() const override { return {"accuracy", true}; }
  [[nodiscard]] std::unique_ptr<ronda::LossOperation> make(const ronda::TensorDesc& outputs,
                                                           ronda::Primitives&) const override {
    if (outputs.shape.rank() != 2 || outputs.dtype != ronda::DType::float32)
      throw ronda::InputError("this loss takes float32 (N, classes), not " + outputs.text());
    return std::make_unique<Loops>();
  }

 private:
  class Loops final : public ronda::LossOperation {
   public:
    /// Sums, never means: Ronda divides by the weight of the whole global batch, of which this rank sees a part. A row
    /// that only fills up the batch has weight 0 and so counts for nothing.
    void run(const ronda::Tensor& outputs, const ronda::Tensor& target, const ronda::Tensor& gradient, std::byte*,
             const ronda::Pass& pass) override {
      const auto classes = static_cast<std::size_t>(outputs.shape()[1]);
      const auto labels = target.as<const std::int32_t>();
      const auto weights = pass.weights->as<const float>();
      std::ranges::fill(gradient.as<float>(), 0.0F);
      for (std::size_t n = 0; n < labels.size(); ++n) {
        const auto x = outputs.as<const float>().subspan(n * classes, classes);
        const auto dx = gradient.as<float>().subspan(n * classes, classes);
        const auto label = static_cast<std::size_t>(labels[n]);
        const float scale = weights[n] * pass.loss_scale;
        float loss = 0;
        for (std::size_t c = 0; c < classes; ++c) {
          const float lack = x[c] - x[label] + 1;
          if (c == label || lack <= 0) continue;
          loss += lack;
          dx[c] += scale;
          dx[label] -= scale;
        }
        pass.control->loss += weights[n] * loss;
        pass.control->weight += weights[n];
        if (std::ranges::max_element(x) - x.begin() == labels[n]) pass.control->metric += weights[n];
      }
    }
  };
};
