#pragma once
#include <ronda/layers/loss.hpp>

namespace ronda {

/// −log softmax(x)[label], with labels int32 (N) and outputs (N, classes), computed in float32. With label smoothing ε
/// the target is (1−ε) on the label and ε/classes everywhere (Szegedy et al., CVPR 2016), as in PyTorch. The
/// exponentials are taken of x − max(x), so no finite input overflows; sums over samples are float64.
class SoftmaxCrossEntropy final : public Loss {
 public:
  /// Throws InputError where `label_smoothing` is not in [0, 1).
  explicit SoftmaxCrossEntropy(double label_smoothing = 0);

  [[nodiscard]] bool runs_on_any_device() const noexcept override { return true; }
  /// The share of samples whose largest output is the label's.
  [[nodiscard]] Metric metric() const override { return {"accuracy", true}; }
  /// Its `run` throws InputError for targets that are no labels, and for a label outside [0, classes); a GPU, which
  /// cannot throw, makes the loss NaN for the latter.
  [[nodiscard]] std::unique_ptr<LossOperation> make(const TensorDesc& outputs, Primitives& primitives) const override;

 private:
  float smoothing_;
};

}  // namespace ronda
