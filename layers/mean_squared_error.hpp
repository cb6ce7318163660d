#pragma once
#include <ronda/layers/loss.hpp>

namespace ronda {

/// The mean of (x − y)² over the outputs of a sample, with outputs (N, k) and targets float32 (N, k), or (N) where k is
/// 1: PyTorch's MSELoss. Its metric is the mean of |x − y|, `mae`. On the processor; sums over samples are float64.
class MeanSquaredError final : public Loss {
 public:
  /// @param unit  what 1 stands for, where outputs and targets are scaled: losses and metrics are told in the targets'
  /// own unit, times unit² and unit; gradients are those of the scaled numbers. Throws InputError unless it is above 0.
  explicit MeanSquaredError(double unit = 1);

  [[nodiscard]] Metric metric() const override { return {"mae", false}; }
  /// Throws InputError for outputs that are not float32 (N, k), and its `run` for targets of another type or shape.
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  double unit_;
};

}  // namespace ronda
