#pragma once
#include <cstdint>
#include <vector>

#include <ronda/layers/elementwise_loss.hpp>
#include <ronda/layers/loss.hpp>

namespace ronda {

/// Options with PyTorch's names and defaults.
struct CrossEntropyOptions {
  std::vector<float> weight = {};    ///< weight of each class, at least 0; empty: 1 each
  std::int32_t ignore_index = -100;  ///< label of rows that do not count
  double label_smoothing = 0;        ///< in [0, 1)
};

/// −log softmax(x)[label]: PyTorch's CrossEntropyLoss, with the classes as the last axis. Outputs are (N, classes) with
/// labels int32 (N); or (N, T, classes) with labels (N, T), as in a language model; or with more axes, likewise.
/// Computed in float32. With label smoothing ε the target is ε/classes for each class, plus 1−ε for the label (Szegedy
/// et al., CVPR 2016). Exponentials are of x − max(x), so that finite inputs cannot overflow; sums over rows are
/// float64.
///
/// Targets may also be probabilities, float32 of the outputs' shape, as with mixup: −Σ t_c log softmax(x)_c, only on
/// the processor. Each row then has the weight of its sample, and the accuracy uses the class with the highest
/// probability.
///
/// The mean is over rows, each with the weight of its sample times that of its label's class; a row whose label is
/// `ignore_index` has weight 0. This is PyTorch's weighted mean, taken over all ranks: the sum of the weighted losses
/// divided by the sum of the weights.
class SoftmaxCrossEntropy final : public Loss {
 public:
  /// Throws InputError if `label_smoothing` is not in [0, 1), or a weight is below 0.
  explicit SoftmaxCrossEntropy(double label_smoothing = 0);
  explicit SoftmaxCrossEntropy(CrossEntropyOptions options);

  /// False with class weights: these run only on the processor.
  [[nodiscard]] bool runs_on_any_device() const noexcept override { return spec_.weights.empty(); }
  /// The share of rows whose largest output is that of the label, weighted as in the loss.
  [[nodiscard]] Metric metric() const override { return {"accuracy", true}; }
  /// Throws InputError for outputs with fewer than two axes, or a number of classes other than that of the weights. Its
  /// `run` throws InputError for targets that are neither labels nor probabilities, and for a label outside [0,
  /// classes) in a row that counts; on a GPU, such a label makes the loss NaN instead.
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  CrossEntropySpec spec_;
};

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
