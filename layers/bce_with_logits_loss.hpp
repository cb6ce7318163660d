#pragma once
#include <vector>

#include <ronda/layers/elementwise_loss.hpp>

namespace ronda {

/// −p·y·log σ(x) − (1 − y)·log(1 − σ(x)) of an output x and its target y, where p is the weight of positive targets.
class BinaryCrossEntropy {
 public:
  static constexpr std::string_view name = "BCE with logits";
  [[nodiscard]] static Metric metric() { return {"accuracy", true}; }

  /// @param positive  one weight, or one per element of the last axis; empty: 1
  explicit BinaryCrossEntropy(std::vector<float> positive);
  void check(const Shape& outputs) const;

  /// Computed from exponentials of −|x|, which cannot overflow.
  [[nodiscard]] double value(double x, double y, std::size_t column) const;
  [[nodiscard]] float gradient(float x, float y, std::size_t column) const;
  /// 1 if σ(x) and y are on the same side of a half, otherwise 0; 0 for NaN.
  [[nodiscard]] double measure(double x, double y) const { return (x > 0) == (y > 0.5) && x == x && y == y ? 1 : 0; }

 private:
  [[nodiscard]] float positive(std::size_t column) const {
    return positive_.empty() ? 1.0F : positive_[column % positive_.size()];
  }

  std::vector<float> positive_;
};

/// Binary cross entropy of logits, for one or more binary labels per sample: PyTorch's BCEWithLogitsLoss. Outputs are
/// float32 (N, …), targets in [0, 1], float32 of the same shape, or (N) for outputs (N, 1); the mean is over all
/// outputs. Its metric is the accuracy: the share of outputs with σ(x) on the same side of a half as the target. On the
/// processor.
class BCEWithLogitsLoss final : public ElementwiseLoss<BinaryCrossEntropy> {
 public:
  /// @param pos_weight  weight of positive targets: one number, or one per element of the last axis; empty: 1.
  /// Throws InputError for numbers below 0; `make` throws it for another count.
  explicit BCEWithLogitsLoss(std::vector<float> pos_weight = {});
};

}  // namespace ronda
